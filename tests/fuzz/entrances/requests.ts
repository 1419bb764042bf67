// A hostile HTTP caller: every operation, each part of a request in turn, and requests that are not HTTP. A response
// with status 500 would be a bug.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import type { TSchema } from 'typebox';
import { OPERATION_IDS, type OperationId, operation } from '../../../contract/operations.ts';
import { withTimeLimit } from '../../harness/until.ts';
import type { HostileValues } from '../hostile.ts';
import { plausibleValueOf, withHostileMember } from '../schemas.ts';
import { type Fixture, withSession } from '../world.ts';

const REQUESTS_AT_ONCE = 5;
/** A limit on reading, because streams of events and logs do not end. */
const RESPONSE_TIMEOUT_MS = 3_000;
const RESPONSE_BYTES_MAX = 100_000;
const HOST = '127.0.0.1';

export async function attackFromCallers(world: Fixture, hostile: HostileValues, count: number): Promise<void> {
  await withSession(world, async ({ id }) => {
    const startIndex = hostile.int(OPERATION_IDS.length);
    for (let n = 0; n < count; n += REQUESTS_AT_ONCE) {
      const requests = Array.from({ length: REQUESTS_AT_ONCE }, (_, more) => {
        const operationId = OPERATION_IDS[(startIndex + n + more) % OPERATION_IDS.length] ?? 'welcome';
        return { operationId, bytes: hostileRequest(operationId, id, world, hostile) };
      });
      await Promise.all(
        requests.map(async ({ operationId, bytes }) => {
          world.notes.note(bytes.toString('latin1'));
          const responseText = await exchange(new URL(world.server.url).port, bytes);
          assert.doesNotMatch(
            responseText,
            /^HTTP\/1\.1 500 /,
            `${operationId}: ${bytes.toString('latin1').slice(0, 2000)}\n${responseText}`,
          );
        }),
      );
    }
  });
}

function hostileRequest(id: OperationId, session: string, world: Fixture, hostile: HostileValues): Buffer {
  const { method, path, query, body, bodyExample, credential, ownPageOnly, upload } = operation(id);
  const hostilePart = hostile.pick(['path', 'query', 'headers', 'body', 'bytes'] as const);
  const key = credential === 'account' ? world.credentials.token : world.server.key;
  const target =
    pathOf(path, hostilePart === 'path', session, world, hostile) + queryOf(query, hostilePart === 'query', hostile);
  const content = upload ? multipartBody(hostile) : bodyOf(body, bodyExample, hostilePart === 'body', hostile);
  const type = upload ? 'multipart/form-data; boundary=x' : 'application/json';
  const headers = [
    `Host: ${HOST}`,
    ...(credential === 'human'
      ? [`Cookie: berth=${hostile.text().replace(/[^\x21-\x7e]/g, '')}`]
      : [`Authorization: Bearer ${key}`]),
    ...(ownPageOnly || credential === 'human' ? [`Origin: ${world.server.url}`] : []),
    ...(content ? [`Content-Type: ${type}`, `Content-Length: ${content.length}`] : []),
    'Connection: close',
    ...(hostilePart === 'headers' ? hostileHeaders(hostile) : []),
  ];
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`, 'latin1');
  const wholeRequest = Buffer.concat([head, content ?? Buffer.alloc(0)]);
  return hostilePart === 'bytes' && hostile.chance(3)
    ? hostile.brokenMessage(wholeRequest.toString('latin1'))
    : wholeRequest;
}

function pathOf(path: string, isHostile: boolean, session: string, world: Fixture, hostile: HostileValues): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    if (isHostile) return encode(hostile.text(), hostile);
    if (name === 'appId') return world.credentials.applicationId;
    return hostile.chance(2) ? session : '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d11';
  });
}

function queryOf(query: TSchema | undefined, isHostile: boolean, hostile: HostileValues): string {
  const { properties = {} }: { properties?: Record<string, TSchema> } = query ?? {};
  const names = Object.keys(properties).filter(() => hostile.chance(2));
  const queryParts = names.map(name => {
    const plausibleValue = plausibleValueOf(properties[name] ?? {}, hostile);
    return `${name}=${isHostile ? encode(hostile.text(), hostile) : encode(String(plausibleValue).slice(0, 100), hostile)}`;
  });
  const unknownParts = isHostile ? [`${encode(hostile.text(), hostile)}=${encode(hostile.text(), hostile)}`] : [];
  const all = [...queryParts, ...unknownParts];
  return all.length === 0 ? '' : `?${all.join('&')}`;
}

/**
 * Encodes text for a URL. At random, leaves the text unencoded, and only replaces characters that would end the request
 * line.
 */
const encode = (text: string, hostile: HostileValues): string => {
  const shortText = text.slice(0, hostile.chance(5) ? 9_000 : 300);
  return hostile.chance(8) ? shortText.replaceAll(/[\s\0]/g, '_') : encodeURIComponent(shortText.toWellFormed());
};

function bodyOf(
  schema: TSchema | undefined,
  example: unknown,
  isHostile: boolean,
  hostile: HostileValues,
): Buffer | undefined {
  if (!schema) return isHostile && hostile.chance(3) ? Buffer.from(hostile.json(hostile.value())) : undefined;
  const plainValue = example !== undefined && hostile.chance(2) ? example : plausibleValueOf(schema, hostile);
  const wholeBody = hostile.json(isHostile ? withHostileMember(plainValue, hostile) : plainValue);
  return isHostile && hostile.chance(6) ? hostile.brokenMessage(wholeBody) : Buffer.from(wholeBody);
}

function multipartBody(hostile: HostileValues): Buffer {
  const name = hostile
    .text()
    .slice(0, 2_000)
    .replaceAll(/[\r\n]/g, '_');
  const part = `--x\r\nContent-Disposition: form-data; name="${hostile.chance(4) ? name : 'file'}"; filename="${name}"\r\n\r\n`;
  const end = hostile.chance(4) ? '' : '\r\n--x--\r\n';
  const file = hostile.chance(2)
    ? hostile.brokenMessage('PK\u0003\u0004'.padEnd(200, 'x'))
    : Buffer.from(hostile.text());
  return Buffer.concat([Buffer.from(part), file, Buffer.from(end)]);
}

const HEADER_NAMES = [
  'Accept',
  'Prefer',
  'If-Match',
  'If-None-Match',
  'Range',
  'Idempotency-Key',
  'X-Request-Id',
  'X-BB-API-Key',
  'X-Stainless-Retry-Count',
  'X-Forwarded-For',
  'traceparent',
  'Last-Event-ID',
  'Content-Type',
  'Content-Encoding',
  'Transfer-Encoding',
  'Expect',
  'Upgrade',
  'Cookie',
];

const hostileHeaders = (hostile: HostileValues): string[] =>
  Array.from({ length: 1 + hostile.int(3) }, () => {
    const value = hostile.pick([
      hostile.text(),
      'text/event-stream',
      'wait=99999999',
      'bytes=0-,-1',
      'chunked',
      'gzip',
      'W/"x"',
    ]);
    return `${hostile.pick(HEADER_NAMES)}: ${value.slice(0, 5_000).replaceAll(/[\r\n\0]/g, '_')}`;
  });

/** Sends the bytes and returns the response, up to a limit of bytes and time. */
function exchange(port: string, bytes: Buffer): Promise<string> {
  const socket = connect(Number(port), HOST);
  let responseText = '';
  const socketClosed = new Promise<void>(resolve => {
    socket.on('data', data => {
      responseText += data.toString('latin1');
      if (responseText.length > RESPONSE_BYTES_MAX) socket.destroy();
    });
    socket.on('error', () => {});
    socket.once('close', () => resolve());
  });
  socket.write(bytes);
  return withTimeLimit('an answer', socketClosed, RESPONSE_TIMEOUT_MS)
    .catch(() => {})
    .then(() => {
      socket.destroy();
      return responseText;
    });
}
