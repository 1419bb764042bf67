// The total resources that clients, uploads and settings use are limited for each session, each application and the
// process. Other sessions are not affected.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { DebugUrls } from '../../contract/live.ts';
import { CdpClient } from '../harness/cdp.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const MIB = 1024 ** 2;
const SESSION_UPLOAD_BYTES = 3_000_000;
const server = await startServer({
  clock: 'test',
  env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_SESSION_UPLOADS: String(SESSION_UPLOAD_BYTES) },
});

async function withSession(work: (session: CreatedSession) => Promise<void>): Promise<void> {
  const session = await server.createSession({ keepAlive: true });
  await work(session);
  await server.release(session.id);
}

describe('clients that do not read their responses', () => {
  /** The unread bytes per client, below the limit for a single client. */
  const RESPONSE_BYTES = 60 * MIB;
  const CLIENT_COUNT = 6;
  /** The same as `UNREAD_BYTES_MAX.session` in waiting-bytes.ts. */
  const SESSION_BYTES_MAX = 320 * MIB;

  it('clients that do not read are disconnected until the unread bytes of the session are within its limit, and the other clients stay connected', () =>
    withSession(async ({ id, connectUrl }) => {
      const reader = await CdpClient.connect(connectUrl);
      const page = await reader.attachToPage();
      const stalledClients: CdpClient[] = [];
      const countDisconnects = (): number =>
        server.log().filter(line => line.includes('cdp.disconnected') && line.includes(id)).length;
      for (let count = 0; count < CLIENT_COUNT; count++) {
        const client = await CdpClient.connect(connectUrl);
        const channel = await client.attachToPage();
        client.stall();
        client.sendRaw(
          JSON.stringify({
            id: 999,
            method: 'Runtime.evaluate',
            params: { expression: `'x'.repeat(${RESPONSE_BYTES})`, returnByValue: true },
            sessionId: channel,
          }),
        );
        stalledClients.push(client);
        assert.equal(await reader.evaluate('6 * 7', page), 42);
      }
      const maxClients = Math.floor(SESSION_BYTES_MAX / RESPONSE_BYTES);
      await eventually(
        'the clients above the limit to be closed',
        () => countDisconnects() >= CLIENT_COUNT - maxClients,
      );
      assert.equal(countDisconnects(), CLIENT_COUNT - maxClients, 'the other clients are still connected');
      assert.equal(await reader.evaluate('6 * 7', page), 42);
      for (const client of stalledClients) client.cut();
      reader.cut();
    }));

  it('clients are disconnected if the bytes of incomplete messages exceed the limit', () =>
    withSession(async ({ id, connectUrl }) => {
      const reader = await CdpClient.connect(connectUrl);
      const page = await reader.attachToPage();
      const { hostname, port, pathname, search } = new URL(connectUrl);
      const sockets: Socket[] = [];
      const closedSockets = new Set<Socket>();
      for (let count = 0; count < 4; count++) {
        const socket = connect(Number(port), hostname).on('error', () => {});
        socket.once('close', () => closedSockets.add(socket)).resume();
        socket.write(
          `GET ${pathname}${search} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
            'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
        );
        // One text frame of 95 MiB, masked with zeros, whose last byte is never sent.
        const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        head.writeUInt32BE(95 * MIB, 6);
        socket.write(head);
        socket.write(Buffer.alloc(95 * MIB - 1, 'x'));
        sockets.push(socket);
      }
      await eventually('one of the sockets to be closed', () => closedSockets.size > 0);
      assert.equal(await reader.evaluate('6 * 7', page), 42);
      for (const socket of sockets) socket.destroy();
      await eventually(
        'all clients to be disconnected',
        () => server.log().filter(line => line.includes('cdp.disconnected') && line.includes(id)).length === 4,
      );
      reader.cut();
    }));
});

describe('more connections than the server allows', () => {
  const CONNECTIONS_MAX = 5_000;

  it('connections above the limit are closed at once, connected clients stay connected, and new connections are accepted after others are closed', () =>
    withSession(async ({ id, connectUrl }) => {
      const client = await CdpClient.connect(connectUrl);
      const page = await client.attachToPage();
      const { hostname, port } = new URL(server.url);
      const sockets = new Set<Socket>();
      let closedCount = 0;
      const isFull = (): boolean => server.log().some(line => line.includes('"event":"http.connections_full"'));
      // Opens more connections than the limit, because on a slow machine the first ones, which send nothing, time out
      // before the last ones are open.
      for (let count = 0; count < 3 * CONNECTIONS_MAX; count++) {
        const socket = connect(Number(port), hostname)
          .on('error', () => {})
          .resume();
        socket.once('close', () => {
          closedCount++;
          sockets.delete(socket);
        });
        sockets.add(socket);
        // The number of connections being opened must not exceed the backlog of the listener.
        if (count % 100 !== 0) continue;
        await once(socket, 'connect');
        if (isFull()) break;
      }
      await eventually('the connections above the limit to be closed', () => closedCount > 0 && isFull());
      assert.equal(await client.evaluate('6 * 7', page), 42);
      for (const socket of sockets) socket.destroy();
      const readSession = () => server.read(id).catch(() => undefined);
      assert.equal((await eventually('a request to be accepted', readSession))?.status, 'RUNNING');
      const laterClient = await CdpClient.connect(connectUrl);
      await laterClient.send('Browser.getVersion');
      await laterClient.close();
      await client.close();
    }));
});

describe('uploads through a live view', () => {
  const DECLARED_BYTES = 2_000_000;
  const BOUNDARY = 'a-boundary';
  const PART = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="NAME"\r\n\r\n`;
  const END = `\r\n--${BOUNDARY}--\r\n`;

  /** The number of files that are being received. */
  const countIncoming = (): number => {
    const folder = join(server.dataDir, 'incoming');
    return existsSync(folder) ? readdirSync(folder).length : 0;
  };

  /**
   * Whether the server has read all bytes that were written to the socket, so that no kernel buffer holds any of them.
   */
  const isRead = ({ writableLength, localPort = 0 }: Socket): boolean => {
    const port = `:${localPort.toString(16).toUpperCase().padStart(4, '0')} `;
    const ends = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .filter(line => line.includes(port));
    return writableLength === 0 && ends.length === 2 && ends.every(line => line.includes(' 00000000:00000000 '));
  };

  class SlowUpload {
    readonly socket: Socket;
    response = '';
    closed = false;
    constructor(path: string, name: string, bytes: number | undefined) {
      const { hostname, port } = new URL(server.url);
      this.socket = connect(Number(port), hostname).on('error', () => {});
      this.socket.on('data', data => {
        this.response += data;
      });
      this.socket.once('close', () => {
        this.closed = true;
      });
      const part = `${PART.replace('NAME', name)}x`; // Contains the first byte, so that the file is created.
      const lengthHeader =
        bytes === undefined ? 'transfer-encoding: chunked' : `content-length: ${part.length + bytes - 1 + END.length}`;
      this.socket.write(
        `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=${BOUNDARY}\r\n${lengthHeader}\r\n\r\n`,
      );
      this.socket.write(bytes === undefined ? chunk(part) : part);
    }
  }
  const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

  async function openControlledView(session: CreatedSession): Promise<{ viewer: LiveViewer; path: string }> {
    const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${session.id}/debug`);
    const viewer = await LiveViewer.open(body.debuggerUrl);
    await viewer.takeControl();
    const { pathname, searchParams } = new URL(body.debuggerUrl);
    return { viewer, path: `${pathname}/files?token=${searchParams.get('token')}` };
  }

  it('uploads reserve their bytes before the first byte is read, and are refused above the limit of the session', () =>
    withSession(async session => {
      const { viewer, path } = await openControlledView(session);
      const uploads = Array.from({ length: 20 }, (_, number) => new SlowUpload(path, `${number}.bin`, DECLARED_BYTES));
      await eventually(
        'all but one to be refused',
        () => uploads.filter(({ response }) => response !== '').length === 19,
      );
      assert.equal(uploads.filter(({ response }) => /^HTTP\/1.1 429 /.test(response)).length, 19);
      await eventually('the accepted upload to begin', () => countIncoming() === 1);
      for (const { socket } of uploads) socket.destroy();
      await eventually('the aborted uploads to be removed', () => countIncoming() === 0);
      const next = new SlowUpload(path, 'next.bin', 6);
      next.socket.write(`hello${END}`);
      await eventually('the next upload to be accepted', () => /^HTTP\/1.1 200 /.test(next.response));
      next.socket.destroy();
      await viewer.close();
    }));

  it('uploads that declare no length are limited in number', () =>
    withSession(async session => {
      const { viewer, path } = await openControlledView(session);
      const uploads = Array.from({ length: 20 }, (_, number) => new SlowUpload(path, `${number}.bin`, undefined));
      await eventually(
        'the uploads above the limit to be refused',
        () => uploads.filter(({ response }) => response).length === 12,
      );
      await eventually('the accepted uploads to begin', () => countIncoming() === 8);
      for (const { socket } of uploads) socket.destroy();
      await eventually('no received file to remain', () => countIncoming() === 0);
      await viewer.close();
    }));

  it('uploads may take minutes while they make progress, and are aborted if they are too slow', () =>
    withSession(async session => {
      const { viewer, path } = await openControlledView(session);
      const honestUpload = new SlowUpload(path, 'honest.bin', 1 + 6 * 100_000);
      const slowUpload = new SlowUpload(path, 'crawling.bin', 100);
      await eventually('both uploads to begin', () => countIncoming() === 2);
      for (let part = 0; part < 6; part++) {
        honestUpload.socket.write('x'.repeat(100_000));
        if (!slowUpload.closed) slowUpload.socket.write('x');
        await eventually('the bytes to be read', () => isRead(honestUpload.socket));
        await server.advance(30_000);
      }
      honestUpload.socket.write(END);
      await eventually('the honest upload to be accepted', () => /^HTTP\/1.1 200 /.test(honestUpload.response));
      await eventually('the slow upload to be aborted', () => slowUpload.closed);
      honestUpload.socket.destroy();
      await viewer.close();
    }));
});

describe('folders of locales and policies', () => {
  const listFolders = (kind: 'locales' | 'policies'): string[] => readdirSync(join(server.dataDir, 'chromium', kind));
  /** The value of UNUSED_LOCALES_MAX and UNUSED_POLICIES_MAX. */
  const UNUSED_FOLDERS_MAX = 16;

  it('locales that Chromium treats as equal share a folder', async () => {
    for (const locale of ['en-x-aaaaaaa1', 'en-x-aaaaaaa2', 'EN', 'en-u-ca-buddhist', 'xx-YY'])
      await server.release((await server.createSession({ browserSettings: { locale } })).id);
    assert.deepEqual(listFolders('locales').sort(), ['en', 'en-u-ca-buddhist']);
  });

  it('unused folders of locales and policies are removed above a limit, and the folder of a locale in use is kept', async () => {
    const dayAgo = new Date(server.now().getTime() - 86_400_000);
    for (const kind of ['locales', 'policies'] as const)
      for (let count = 0; count < 40; count++) {
        const folder = join(server.dataDir, 'chromium', kind, `unused-${count}`);
        mkdirSync(folder);
        utimesSync(folder, dayAgo, dayAgo);
      }
    const usedSession = await server.createSession({ browserSettings: { locale: 'fr-CA' }, keepAlive: true });
    await server.release((await server.createSession({ browserSettings: { locale: 'fr' } })).id);
    for (const kind of ['locales', 'policies'] as const)
      assert.ok(listFolders(kind).length <= UNUSED_FOLDERS_MAX + 2, listFolders(kind).join());
    assert.ok(listFolders('locales').includes('fr-CA'));
    await server.release(usedSession.id);
  });
});
