// A web server that sends given bytes as its response, with headers that no HTTP library would write.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { after } from 'node:test';
import type { HostileValues } from './hostile.ts';

const RESPONSES_MAX = 200;

export interface HostileWeb {
  readonly port: number;
  /** Returns a URL that is answered with these bytes. */
  serve(content: Buffer): string;
}

export async function openHostileWeb(): Promise<HostileWeb> {
  const responses = new Map<string, Buffer>();
  let count = 0;
  const server = createServer(socket => {
    socket.on('error', () => {});
    socket.once('data', data => {
      const path = /^\S+ (\S+)/.exec(data.toString('latin1'))?.[1] ?? '';
      socket.end(
        responses.get(path.replace(/^http:\/\/[^/]*/, '').split('?', 1)[0] ?? '') ?? 'HTTP/1.1 404 No\r\n\r\n',
      );
    });
    socket.setTimeout(20_000, () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  after(() => void server.close());
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    port,
    serve: content => {
      const path = `/${++count}`;
      responses.set(path, content);
      responses.delete(`/${count - RESPONSES_MAX}`);
      return `http://127.0.0.1:${port}${path}`;
    },
  };
}

const HEADER_NAMES = [
  'Location',
  'Content-Disposition',
  'Content-Type',
  'Set-Cookie',
  'Content-Security-Policy',
  'Link',
  'Refresh',
  'Content-Encoding',
  'Content-Length',
  'Transfer-Encoding',
  'Content-Range',
  'Server-Timing',
  'SourceMap',
  'Report-To',
  'X-Long',
];

/** A response with a status line, headers with hostile values, and a body that may not match them. */
export function hostileResponse(hostile: HostileValues): Buffer {
  const status = hostile.pick([
    '200 OK',
    '302 Found',
    '304 x',
    '401 No',
    '204 x',
    '206 x',
    '407 x',
    '500 x',
    '999 x',
    '103 x',
  ]);
  const headers = Array.from(
    { length: 1 + hostile.int(4) },
    () => `${hostile.pick(HEADER_NAMES)}: ${headerValue(hostile)}`,
  );
  const body = hostile.chance(4)
    ? hostile.brokenMessage('<!doctype html><title>x</title>')
    : Buffer.from(hostile.text());
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status}\r\n${headers.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
}

function headerValue(hostile: HostileValues): string {
  const text = hostile.text();
  const oneLineText = hostile.chance(3) ? text : text.replaceAll(/[\r\n\0]/g, '_');
  return hostile.pick([
    oneLineText,
    `attachment; filename="${oneLineText}"`,
    `attachment; filename*=UTF-8''${encodeSafe(text)}`,
    `text/html; charset=${oneLineText}`,
    `a=${oneLineText}; Path=/; Domain=${oneLineText}`,
    '-1',
    '99999999999999999999',
    'chunked',
    'gzip, br, zstd',
  ]);
}

const encodeSafe = (text: string): string => encodeURIComponent(text.toWellFormed()).slice(0, 4000);
