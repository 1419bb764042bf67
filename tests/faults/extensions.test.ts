// The server is killed during an upload of an extension, after its last byte, and between placing a session and loading
// its extensions. Confirmed uploads exist afterwards, and no incomplete file or session remains.
import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { basename, join } from 'node:path';
import { after, test } from 'node:test';
import type { Extension } from '../../contract/extensions.ts';
import type { Session } from '../../contract/sessions.ts';
import { CdpClient } from '../harness/cdp.ts';
import { messagingExtension } from '../harness/extensions.ts';
import { filesUnder } from '../harness/files-under.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';
import { listOpenSessions } from './aftermath.ts';

const EXTENSIONS = '/v1/browsers/extensions';
const SESSIONS = '/v1/browsers/sessions';

const server = await startServer({ env: { BERTH_ADOPT_GRACE: '600' } });
const sockets: Socket[] = [];
after(() => sockets.map(socket => socket.destroy()));

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** An extension large enough for its upload to be interrupted in the middle. */
const extensionWithLargeFile = (name: string): Buffer =>
  messagingExtension(name, {}, [{ name: 'weight.bin', bytes: randomBytes(600_000), method: 0 }]);

const filesIn = (folder: string): string[] => filesUnder(join(server.dataDir, folder)).map(path => basename(path));

/** The stored files of extensions, by checksum. */
const listStoredChecksums = (): string[] =>
  filesIn('artifacts')
    .filter(name => /^[0-9a-f]{64}$/.test(name))
    .sort();

/** Sends the first bytes of an upload and ignores the response. */
async function beginUpload(bytes: Buffer, count: number): Promise<void> {
  const { body, headers = {} } = await uploadRequest('extension.zip', bytes);
  assert.ok(Buffer.isBuffer(body));
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {}); // the kill closes the connection
  sockets.push(socket);
  socket.write(
    `POST ${EXTENSIONS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.key}\r\n` +
      `content-type: ${headers['content-type']}\r\ncontent-length: ${body.length}\r\n\r\n`,
  );
  socket.write(body.subarray(0, Math.min(count, body.length)));
}

async function uploadExtension(bytes: Buffer): Promise<Extension> {
  const uploadResponse = await server.api<Extension>('POST', EXTENSIONS, await uploadRequest('extension.zip', bytes));
  assert.equal(uploadResponse.status, 200, uploadResponse.text);
  assert.equal(uploadResponse.body.checksum, sha256(bytes));
  return uploadResponse.body;
}

async function readLoadedExtensions({
  connectUrl,
}: {
  readonly connectUrl?: string | undefined;
}): Promise<readonly string[]> {
  const client = await CdpClient.connect(connectUrl ?? '');
  const { extensions } = await client.send('Extensions.getExtensions');
  await client.close();
  return (Array.isArray(extensions) ? extensions : []).map(({ name }) => String(name)).sort();
}

test('no file is stored if the server is killed during an upload, and the same upload is accepted afterwards', async () => {
  const bytes = extensionWithLargeFile('half');
  await beginUpload(bytes, 300_000);
  await eventually('the upload to begin', () => filesIn('incoming').length > 0);
  await server.restart();
  assert.deepEqual([filesIn('incoming'), filesIn('unpacking'), listStoredChecksums()], [[], [], []]);
  const { id, name } = await uploadExtension(bytes);
  assert.equal(name, 'half');
  assert.deepEqual(listStoredChecksums(), [sha256(bytes)]);
  const session = await server.createSession({ extensionIds: [id] });
  assert.deepEqual(await readLoadedExtensions(session), ['half']);
  await server.release(session.id);
});

test('at most one file is stored if the server is killed after the last byte of an upload, and the next upload uses this file', async () => {
  for (const waitMs of [0, 30]) {
    const bytes = extensionWithLargeFile(`whole${waitMs}`);
    const checksumsBefore = listStoredChecksums();
    await beginUpload(bytes, Number.POSITIVE_INFINITY);
    await eventually(
      'the upload to begin',
      () => filesIn('incoming').length > 0 || listStoredChecksums().length > checksumsBefore.length,
    );
    await new Promise(resolve => setTimeout(resolve, waitMs));
    await server.restart();
    assert.deepEqual([filesIn('incoming'), filesIn('unpacking')], [[], []]);
    const checksumsAfter = [...checksumsBefore, sha256(bytes)].sort();
    assert.ok(
      [String(checksumsBefore), String(checksumsAfter)].includes(String(listStoredChecksums())),
      `after ${waitMs} ms`,
    );
    const { id } = await uploadExtension(bytes);
    assert.deepEqual(listStoredChecksums(), checksumsAfter);
    assert.equal((await server.api('DELETE', `${EXTENSIONS}/${id}`)).status, 204);
  }
});

/** The folders of unpacked extensions in all boxes. */
const listUnpackedFolders = (): string[] => {
  const boxesFolder = join(server.dataDir, 'sessions');
  return namesIn(boxesFolder).flatMap(box => namesIn(join(boxesFolder, box, 'box/extensions')));
};

/** Returns the names in the folder. Empty if there is no folder, for example because it was just removed. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const FILE_COUNT = 2_000;
/** A large extension, so that the server can be killed while unpacking. */
const extensionWithManyFiles = (name: string): Buffer =>
  messagingExtension(
    name,
    {},
    Array.from({ length: FILE_COUNT }, (_, at) => ({ name: `files/${at}`, bytes: 'x', method: 0 })),
  );

for (const [when, make, waitMs] of [
  ['while an extension of a session is unpacked', extensionWithManyFiles, 0],
  ['around the time at which the extensions of a session are loaded', messagingExtension, 40],
] as const)
  test(`a session has all its extensions or has ended if the server is killed ${when}`, async () => {
    const extensionIds = [
      (await uploadExtension(make('one'))).id,
      (await uploadExtension(messagingExtension('two'))).id,
    ];
    const body = { keepAlive: true, extensionIds };
    const headers = { 'idempotency-key': randomUUID() };
    const pendingCreate = server.api<Session>('POST', SESSIONS, { body, headers }).catch(() => undefined);
    await until('extensions to be unpacked', () => (listUnpackedFolders().length > 0 ? true : undefined));
    await new Promise(resolve => setTimeout(resolve, waitMs));
    await server.kill();
    const isPartlyUnpacked = filesIn('sessions').filter(name => /^\d+$/.test(name)).length < FILE_COUNT;
    await server.start();
    const firstResponse = await pendingCreate;
    const openRows = await listOpenSessions(server);
    assert.ok(openRows.length <= 1);
    const repeatedResponse = await server.api<Session>('POST', SESSIONS, { body, headers });
    assert.equal(repeatedResponse.status, 201, repeatedResponse.text);
    const { id, status, endReason } = await server.read(repeatedResponse.body.id);
    if (firstResponse?.status === 201) assert.deepEqual([firstResponse.body.id, status], [id, 'RUNNING']);
    if (openRows[0]) assert.equal(openRows[0].id, id);
    if (make === extensionWithManyFiles && isPartlyUnpacked) assert.equal(status, 'ERROR', 'unpacking was cut off');
    if (status === 'RUNNING') {
      assert.deepEqual(await readLoadedExtensions(repeatedResponse.body), ['one', 'two']);
      await server.release(id);
    } else assert.deepEqual([status, endReason], ['ERROR', 'service_restart']);
    await server.waitUntilSettled();
    assert.deepEqual(listUnpackedFolders(), []);
  });

/** Polls frequently, because the awaited state does not last long. */
async function until(what: string, look: () => true | undefined): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!look()) {
    if (performance.now() > deadline) throw new Error(`waited a minute in vain for ${what}`);
    await new Promise(resolve => setTimeout(resolve, 2));
  }
}
