// The server is killed during an upload, a download or a sweep of files, and the object store is down for a while.
// Confirmed files exist afterwards, and no incomplete file remains.
import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { chownSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, describe, it } from 'node:test';
import { chromium } from 'playwright-core';
import type { Download, DownloadPage, UploadResponse } from '../../contract/files.ts';
import { filesUnder } from '../harness/files-under.ts';
import { openPages } from '../harness/pages.ts';
import { startS3 } from '../harness/s3.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { listEvents } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';
import { listCompleteDownloads } from '../harness/whole-downloads.ts';
import { releaseAll } from './aftermath.ts';

const DAY_MS = 24 * 3600_000;
/** Long enough for retries, which use exponential backoff of at most a minute. */
const STORE_TIMEOUT_MS = 180_000;
const FILE_CONTENT = randomBytes(600_000);
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const openResponses: ServerResponse[] = [];

const pages = await openPages({
  '/files': '<!doctype html><title>Files</title><a id=whole href=/whole>whole</a><a id=gated href=/gated>gated</a>',
  '/whole': (_, response) => void response.writeHead(200, attachmentHeaders('whole.bin')).end(FILE_CONTENT),
  '/gated': (_, response) => {
    response.writeHead(200, { ...attachmentHeaders('gated.bin'), 'content-length': String(FILE_CONTENT.length) });
    response.write(FILE_CONTENT.subarray(0, 200_000));
    openResponses.push(response);
  },
});
const server = await startServer({ pages, clock: 'test', env: { BERTH_ADOPT_GRACE: '600' } });

function attachmentHeaders(name: string): Record<string, string> {
  return { 'content-type': 'application/octet-stream', 'content-disposition': `attachment; filename=${name}` };
}

const waitForDownloads = async (
  testServer: TestServer,
  session: string,
  count: number,
): Promise<readonly Download[]> => {
  const path = `/v1/browsers/downloads?sessionId=${session}`;
  const look = async () => (await testServer.api<DownloadPage>('GET', path)).body;
  return (await eventually(`${count} downloads`, look, ({ total }) => total === count)).downloads;
};
const clickLinks = async (url: string, ...links: readonly string[]): Promise<void> => {
  const browser = await chromium.connectOverCDP(url);
  const page = browser.contexts()[0]?.pages()[0];
  await page?.goto(`${pages.a}/files`);
  for (const link of links) await page?.click(link);
  await browser.close();
};
/** The complete files in the browser's own download folder. */
const wholeFilesIn = (session: string): string[] => listCompleteDownloads(downloadFolderOf(session));
const downloadFolderOf = (session: string): string =>
  join(server.dataDir, 'sessions', server.boxOf(session) ?? session, 'box/downloads');
const fetchDigest = async (download: Download | undefined): Promise<string> =>
  sha256(Buffer.from(await (await fetch(String(download?.downloadUrl))).arrayBuffer()));

describe('a server that is killed', () => {
  // Ends the session of a failed test before the clock is advanced by months.
  afterEach(() => releaseAll(server));

  it('after the server is killed, downloads that completed before or during the outage are kept, and interrupted ones are not listed', async () => {
    const session = await server.createSession({ keepAlive: true });
    await clickLinks(session.connectUrl, '#whole', '#gated');
    await waitForDownloads(server, session.id, 1);
    await eventually('the gated download to begin', () => openResponses.length === 1);
    const browser = await chromium.connectOverCDP(session.connectUrl);
    const page = browser.contexts()[0]?.pages()[0];
    // The page starts a download only when it can no longer connect, which means that the server is down.
    await page?.evaluate(
      `void (async () => {
        const reaches = () => fetch('/files', { cache: 'no-store' }).then(() => true, () => false);
        while (await reaches()) await new Promise(resolve => setTimeout(resolve, 50));
        Object.assign(document.createElement('a'), {
          href: URL.createObjectURL(new Blob(['made meanwhile'])), download: 'meanwhile.txt' }).click();
      })()`,
    );
    await server.kill();
    await eventually('the download that completes during the outage', () => wholeFilesIn(session.id).length === 2);
    await server.start();
    await browser.close();
    const downloads = await waitForDownloads(server, session.id, 2);
    assert.deepEqual(downloads.map(({ filename }) => filename).sort(), ['download', 'whole.bin']);
    assert.equal(await fetchDigest(downloads.find(({ filename }) => filename === 'whole.bin')), sha256(FILE_CONTENT));
    const namelessDownload = downloads.find(({ filename }) => filename === 'download');
    assert.equal(await fetchDigest(namelessDownload), sha256(Buffer.from('made meanwhile')));
    openResponses.pop()?.end();
    await server.release(session.id);
    const failedEvents = await listEvents(server, session.id, 'download.failed');
    assert.deepEqual(
      failedEvents.map(({ detail }) => detail.filename),
      ['gated.bin'],
    );
    assert.equal((await waitForDownloads(server, session.id, 2)).length, 2);
  });

  it('exactly one copy of a download is kept, even if the server is killed while storing the file', async () => {
    const session = await server.createSession({ keepAlive: true });
    for (const [round, waitMs] of [0, 10, 40].entries()) {
      await clickLinks(session.connectUrl, '#whole');
      // Waits until the download is complete in the box. Its bytes pass through the server, so a restart would
      // interrupt it.
      await eventually('the file to be complete in the box', () => wholeFilesIn(session.id).length === round + 1);
      await new Promise(resolve => setTimeout(resolve, waitMs));
      await server.restart();
      const downloads = await waitForDownloads(server, session.id, round + 1);
      for (const download of downloads) assert.equal(await fetchDigest(download), sha256(FILE_CONTENT));
    }
    await server.release(session.id);
    assert.equal((await waitForDownloads(server, session.id, 3)).length, 3);
    await eventually('the outbox to be empty', () => readdirSync(join(server.dataDir, 'staging/outbox')), isEmpty);
  });

  it('after the server is killed, the next server does not treat a file as complete while its partial file exists', async () => {
    const session = await server.createSession({ keepAlive: true });
    await clickLinks(session.connectUrl, '#whole');
    const [first] = await waitForDownloads(server, session.id, 1);
    const [name = ''] = wholeFilesIn(session.id);
    await server.kill();
    // When a download completes, Chromium has two files for a moment: an empty file with the final name, and the
    // partial file, which it then renames over the empty one. The test creates both files for two downloads.
    const pathOf = (guid: string): string => join(downloadFolderOf(session.id), guid);
    const { uid, gid } = statSync(pathOf(name));
    const [completedGuid = '', partialGuid = ''] = [0, 1].map(() => randomUUID());
    for (const guid of [completedGuid, partialGuid])
      for (const [path, bytes] of [
        [pathOf(guid), Buffer.alloc(0)] as const,
        [`${pathOf(guid)}.crdownload`, FILE_CONTENT] as const,
      ]) {
        writeFileSync(path, bytes);
        chownSync(path, uid, gid);
      }
    await server.start();
    // The adopting server polls twice, and stores the files that it finds both times.
    await server.advance(1_000);
    await server.advance(1_000);
    renameSync(`${pathOf(completedGuid)}.crdownload`, pathOf(completedGuid));
    const newDownloads = (await waitForDownloads(server, session.id, 2)).filter(({ id }) => id !== first?.id);
    assert.deepEqual(
      newDownloads.map(({ checksum }) => checksum),
      [sha256(FILE_CONTENT)],
    );
    await server.release(session.id);
    await eventually(
      'the staged downloads to be processed',
      () => readdirSync(join(server.dataDir, 'staging/downloads')),
      isEmpty,
    );
    assert.equal((await waitForDownloads(server, session.id, 2)).length, 2);
  });

  it('a deleted download is not restored after the server is killed and restarted, or at the end of its session', async () => {
    const session = await server.createSession({ keepAlive: true });
    await clickLinks(session.connectUrl, '#whole');
    const [download] = await waitForDownloads(server, session.id, 1);
    assert.equal((await server.api('DELETE', `/v1/browsers/downloads/${download?.id}`)).status, 204);
    await server.restart();
    await clickLinks(session.connectUrl, '#whole');
    const [second, ...more] = await waitForDownloads(server, session.id, 1);
    assert.deepEqual([second?.filename, more], ['whole.bin', []]);
    await server.release(session.id);
    await eventually(
      'the staged downloads to be processed',
      () => readdirSync(join(server.dataDir, 'staging/downloads')),
      isEmpty,
    );
    assert.deepEqual(
      (await waitForDownloads(server, session.id, 1)).map(({ id }) => id),
      [second?.id],
    );
  });

  it('no part of an upload remains if the server is killed during the upload', async () => {
    const session = await server.createSession({ keepAlive: true });
    const { body, headers = {} } = await uploadRequest('cv.pdf', FILE_CONTENT);
    assert.ok(Buffer.isBuffer(body));
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {}); // the kill closes the connection
    socket.write(
      `POST /v1/browsers/sessions/${session.id}/uploads HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.key}\r\n` +
        `content-type: ${headers['content-type']}\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    socket.write(body.subarray(0, 300_000));
    const incomingFolder = join(server.dataDir, 'incoming');
    await eventually('the upload to begin', () => !isEmpty(filesUnder(incomingFolder)));
    await server.restart();
    socket.destroy();
    assert.deepEqual(filesUnder(incomingFolder), []);
    assert.deepEqual((await server.read(session.id)).uploads, []);
    const path = `/v1/browsers/sessions/${session.id}/uploads`;
    const secondResponse = await server.api<UploadResponse>('POST', path, await uploadRequest('cv.pdf', FILE_CONTENT));
    assert.equal(secondResponse.body.checksum, sha256(FILE_CONTENT));
    await server.release(session.id);
  });

  it('files are deleted after 31 days and sessions after 90 days, even if the server is killed around the time of a sweep', async () => {
    const sessions: string[] = [];
    for (let i = 0; i < 3; i++) {
      const session = await server.createSession({ keepAlive: true });
      await clickLinks(session.connectUrl, '#whole');
      await waitForDownloads(server, session.id, 1);
      await server.release(session.id);
      sessions.push(session.id);
    }
    const listObjects = (): string[] => filesUnder(join(server.dataDir, 'artifacts/objects'));
    const readSweepPlan = async (): Promise<{ files: Array<{ id: string }>; sessions: Array<{ id: string }> }> =>
      JSON.parse((await server.berth('sweep', '--dry-run', '--json')).stdout);
    assert.deepEqual(await readSweepPlan(), { files: [], sessions: [] });
    await server.advance(31 * DAY_MS - 3600_000);
    assert.ok(sessions.every(id => listObjects().some(name => name.includes(id) && name.includes('downloads/'))));
    await server.advance(2 * 3600_000);
    await server.kill();
    await server.start();
    const listRemainingObjects = () => listObjects().filter(name => sessions.some(id => name.includes(id)));
    await eventually('the files of the sessions to be deleted', listRemainingObjects, isEmpty);
    for (const id of sessions) assert.equal((await server.read(id)).status, 'COMPLETED');
    for (const id of sessions) assert.deepEqual(await waitForDownloads(server, id, 0), []);
    await server.advance(60 * DAY_MS);
    const readKnownSessions = async (): Promise<string[]> => {
      const responses = await Promise.all(sessions.map(id => server.api('GET', `/v1/browsers/sessions/${id}`)));
      return sessions.filter((_, at) => responses[at]?.status !== 404);
    };
    await server.eventuallyHourly('the sessions to be forgotten', readKnownSessions, isEmpty);
  });
});

describe('an object store that is down for a while', () => {
  it('while the object store is down, callers are not delayed and no file is lost, and download links point to the store once it is up', async () => {
    const store = await startS3();
    after(() => store.close());
    const s3Server = await startServer({ pages, env: store.env });
    await store.down();
    const session = await s3Server.createSession({ keepAlive: true });
    await clickLinks(session.connectUrl, '#whole');
    const [waitingDownload] = await waitForDownloads(s3Server, session.id, 1);
    assert.ok(waitingDownload?.downloadUrl.startsWith(s3Server.url), 'the file is only on the server');
    assert.equal(await fetchDigest(waitingDownload), sha256(FILE_CONTENT));
    await s3Server.release(session.id);
    await s3Server.restart();
    assert.equal(await fetchDigest((await waitForDownloads(s3Server, session.id, 1))[0]), sha256(FILE_CONTENT));
    await store.up();
    const storedDownload = await eventually(
      'the file to be stored',
      async () => (await waitForDownloads(s3Server, session.id, 1))[0],
      download => download?.downloadUrl.startsWith(store.endpoint) ?? false,
      STORE_TIMEOUT_MS,
    );
    assert.equal(await fetchDigest(storedDownload), sha256(FILE_CONTENT));
    assert.equal(await fetchDigest(waitingDownload), sha256(FILE_CONTENT), 'the earlier link works too');
    await eventually('the outbox to be empty', () => readdirSync(join(s3Server.dataDir, 'staging/outbox')), isEmpty);
    assert.equal((await s3Server.api('DELETE', `/v1/browsers/downloads/${storedDownload?.id}`)).status, 204);
    assert.equal((await fetch(String(storedDownload?.downloadUrl))).status, 404);
  });
});

const isEmpty = (list: readonly unknown[]): boolean => list.length === 0;
