// Failures during the save of a context: the server is killed, stored bytes are damaged, a profile is hostile, or a
// context is deleted. No login is lost silently, and no copy of a profile remains.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { ErrorBody } from '../../contract/common.ts';
import type { Context, StorageState } from '../../contract/contexts.ts';
import { CdpClient } from '../harness/cdp.ts';
import {
  createContext,
  listContextEvents,
  persistentBody,
  readContext,
  waitForContextEvent,
  waitForVersion,
} from '../harness/contexts.ts';
import { filesUnder } from '../harness/files-under.ts';
import type { HttpResult } from '../harness/http.ts';
import { findMarks, LOGIN_PAGES, leaveMarks, marksWithoutWorker, runOnPage, sitesOf } from '../harness/logged-in.ts';
import { openPages } from '../harness/pages.ts';
import { startS3 } from '../harness/s3.ts';
import { startServer } from '../harness/server.ts';
import { browserProcessOf, storageProcessOf } from '../harness/session-processes.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';

/** At least as long as the interval at which the server copies the cookies of a session. */
const COPY_INTERVAL_MS = 5_000;
const RELEASE_MS_MAX = 10_000;
/** How long the storage process of a browser is stopped: longer than Chromium takes to exit. */
const STOPPED_MS = 600;
const STORED_CHARS = 2_000_000;

const pages = await openPages(LOGIN_PAGES);
const server = await startServer({ pages, env: { BERTH_DISCONNECT_GRACE: '0' } });
const { plain, secure } = sitesOf(pages);

async function createMarkedSession(id: string, mark: string): Promise<string> {
  const session = await server.createSession({ keepAlive: true, ...persistentBody(id) });
  await runOnPage(session.connectUrl, page => leaveMarks(page, plain, mark));
  return session.id;
}

const objectPathsOf = (context: string): string[] =>
  filesUnder(join(server.dataDir, 'artifacts/objects')).filter(path => path.includes(`/${context}/`));

const listStagingFolder = (): string[] => {
  try {
    return readdirSync(join(server.dataDir, 'contexts'));
  } catch {
    return [];
  }
};

test('local storage that pages write just before the end of their session is saved, even if the storage process of the browser runs late', async () => {
  const { id } = await createContext(server);
  const session = await server.createSession({ keepAlive: true, ...persistentBody(id) });
  const storageProcess = await runOnPage(session.connectUrl, async page => {
    await page.goto(secure);
    // The renderer of the page runs a service worker too, and therefore does not end when the page is closed.
    await page.evaluate(`navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)`);
    await page.evaluate(`localStorage.setItem('first', '1');
      addEventListener('pagehide', () => localStorage.setItem('last', '3'))`);
    const stoppedProcess = storageProcessOf(session.id);
    assert.ok(stoppedProcess);
    process.kill(stoppedProcess.pid, 'SIGSTOP');
    await page.evaluate(`localStorage.setItem('second', '2'.repeat(${STORED_CHARS}))`);
    return stoppedProcess;
  });
  const pendingRelease = server.release(session.id);
  const eventsPath = `/v1/browsers/sessions/${session.id}/events`;
  await eventually('the end to be decided', async () =>
    (await server.api('GET', eventsPath)).text.includes('session.end_decided'),
  );
  await setTimeout(STOPPED_MS);
  process.kill(storageProcess.pid, 'SIGCONT');
  await pendingRelease;
  await waitForVersion(server, id, 1);
  const { body } = await server.api<StorageState>('GET', `/v1/browsers/contexts/${id}/storage-state`);
  const items = body.origins.flatMap(({ localStorage }) => localStorage.map(({ name, value }) => [name, value.length]));
  assert.deepEqual(Object.fromEntries(items), { first: 1, second: STORED_CHARS, last: 1 });
});

test('if the server is killed during a save, the save is completed after the restart', async () => {
  const { id } = await createContext(server);
  let previousCookie: string | undefined;
  for (const [round, waitMs] of [0, 40, 120].entries()) {
    const session = await createMarkedSession(id, `k${round}`);
    const pendingRelease = server.release(session).catch(() => {}); // fails if the server is killed before it responds
    await setTimeout(100 + waitMs);
    await server.restart();
    await pendingRelease;
    // If the server was killed before the release was stored, the session continues and the caller repeats the release.
    if ((await server.read(session)).status === 'RUNNING') await server.release(session);
    await waitForVersion(server, id, round + 1);
    const eventTypes = (await listContextEvents(server, session)).map(({ type }) => type);
    assert.match(eventTypes.at(-1) ?? '', /^context\.saved(_partially)?$/);
    const nextSession = await server.createSession({ contextId: id });
    await runOnPage(nextSession.connectUrl, async page => {
      const foundCookie = (await findMarks(page, plain)).persistentCookie;
      // If the server was killed before the end of the session had begun, only the copy made during the session can be
      // saved. This copy has the cookies of the current round if enough time had passed since they were set. Otherwise
      // it has the cookies with which the session started.
      const isPartial = eventTypes.at(-1) === 'context.saved_partially';
      assert.ok(
        foundCookie === `k${round}` || (isPartial && foundCookie === previousCookie),
        `found cookie ${foundCookie} after ${eventTypes.join()}`,
      );
      previousCookie = foundCookie;
    });
  }
  await eventually('the staging folder to be empty', listStagingFolder, left => left.length === 0);
});

test('while the object store is down, a create request waits for a pending save and gets 409, and the save completes later', async () => {
  const store = await startS3();
  after(() => store.close());
  const env = { ...store.env, BERTH_DISCONNECT_GRACE: '0' };
  const s3Server = await startServer({ pages, clock: 'test', env });
  const { id } = await createContext(s3Server);
  const session = await s3Server.createSession({ keepAlive: true, timeout: 300, ...persistentBody(id) });
  await runOnPage(session.connectUrl, page => leaveMarks(page, plain, 'held-up'));
  await store.down();
  await s3Server.advance(301_000);
  assert.equal((await s3Server.waitUntilEnded(session.id)).status, 'TIMED_OUT');
  const body = { contextId: id };
  let createResult: HttpResult<ErrorBody> | undefined;
  const pendingCreate = s3Server.api('POST', '/v1/browsers/sessions', { body }).then(response => {
    createResult = response;
  });
  const refusedResponse = await eventually('the create to be refused', async () => {
    if (!createResult) await s3Server.advance(1_000);
    return createResult;
  });
  await pendingCreate;
  assert.deepEqual(
    [refusedResponse?.status, refusedResponse?.body.code],
    [409, 'context_in_use'],
    refusedResponse?.text,
  );
  assert.deepEqual(refusedResponse?.body.details, { sessionId: session.id, saving: true });
  assert.equal((await readContext(s3Server, id)).version, 0);
  await store.up();
  await eventually('the context to be saved', async () => {
    await s3Server.advance(60_000);
    return (await readContext(s3Server, id)).version === 1;
  });
  const nextSession = await s3Server.createSession({ contextId: id });
  await runOnPage(nextSession.connectUrl, async page => {
    assert.deepEqual(await findMarks(page, plain), marksWithoutWorker('held-up'));
  });
  await s3Server.waitUntilEnded(nextSession.id);
});

test('damaged bytes of the newest version are detected, and the previous version is used', async () => {
  const { id } = await createContext(server);
  for (const [index, mark] of ['old', 'new'].entries()) {
    await server.release(await createMarkedSession(id, mark));
    await waitForVersion(server, id, index + 1);
  }
  const newestSessionId = (await readContext(server, id)).lastSessionId ?? '';
  const archivePath = objectPathsOf(id).find(path => path.endsWith(`/${newestSessionId}`));
  assert.ok(archivePath, objectPathsOf(id).join('\n'));
  const bytes = readFileSync(archivePath);
  bytes.writeUInt8(bytes.readUInt8(1000) ^ 1, 1000);
  writeFileSync(archivePath, bytes);
  const session = await server.createSession({ contextId: id });
  await runOnPage(session.connectUrl, async page => {
    assert.deepEqual(await findMarks(page, plain), marksWithoutWorker('old'));
  });
  const contextEvents = (await listContextEvents(server, session.id)).map(({ type, detail }) => [type, detail.version]);
  assert.deepEqual(contextEvents, [
    ['context.version_skipped', 2],
    ['context.restored', 1],
  ]);
});

test('a session whose browser hangs is released within 10 seconds, and its context is saved from the copies made before the browser hung', async () => {
  const hangServer = await startServer({ pages, clock: 'test', env: { BERTH_DISCONNECT_GRACE: '0' } });
  const { id } = await createContext(hangServer);
  const earlierSession = await hangServer.createSession({ keepAlive: true, ...persistentBody(id) });
  await runOnPage(earlierSession.connectUrl, page => leaveMarks(page, plain, 'earlier'));
  await hangServer.release(earlierSession.id);
  await waitForVersion(hangServer, id, 1);
  const session = await hangServer.createSession({ keepAlive: true, ...persistentBody(id) });
  await runOnPage(session.connectUrl, page => leaveMarks(page, plain, 'hanging'));
  const client = await CdpClient.connect(session.connectUrl);
  process.kill(browserProcessOf(session.id).pid, 'SIGSTOP');
  // From now on a periodic copy of the cookies waits for the browser.
  await hangServer.advance(COPY_INTERVAL_MS);
  const lineCountBefore = hangServer.log().length;
  await withTimeLimit('the session to be released', hangServer.release(session.id), RELEASE_MS_MAX);
  await client.waitForClose();
  const endLines = hangServer.log().slice(lineCountBefore);
  assert.ok(endLines.some(line => line.includes('session.browser_hangs')));
  await waitForContextEvent(hangServer, session.id, 'context.saved_partially');
  const nextSession = await hangServer.createSession({ contextId: id });
  await runOnPage(nextSession.connectUrl, async page => {
    // The last copy may have been made before the page set its cookie.
    assert.match(String((await findMarks(page, plain)).persistentCookie), /^(earlier|hanging)$/);
  });
});

test('a release does not wait for a browser that is killed during the release', async () => {
  const { id } = await createContext(server);
  const session = await server.createSession({ keepAlive: true, ...persistentBody(id) });
  const client = await CdpClient.connect(session.connectUrl);
  const { pid } = browserProcessOf(session.id);
  process.kill(pid, 'SIGSTOP');
  const lineCountBefore = server.log().length;
  const pendingRelease = server.release(session.id);
  // Clients are disconnected before the cookies are copied for the last time.
  await client.waitForClose();
  process.kill(pid, 'SIGKILL');
  await pendingRelease;
  const endLines = server.log().slice(lineCountBefore);
  assert.ok(!endLines.some(line => line.includes(session.id) && line.includes('gave up after')));
});

test('a profile that is too large is not saved, and the earlier version is kept', async () => {
  const { id } = await createContext(server);
  await server.release(await createMarkedSession(id, 'good'));
  await waitForVersion(server, id, 1);
  const session = await createMarkedSession(id, 'bad');
  const indexedDbFolder = join(server.dataDir, 'sessions', session, 'box/profile/Default/IndexedDB');
  mkdirSync(indexedDbFolder, { recursive: true });
  symlinkSync('/etc/passwd', join(indexedDbFolder, 'link'));
  writeFileSync(join(indexedDbFolder, 'huge'), '');
  truncateSync(join(indexedDbFolder, 'huge'), 2 * 1024 ** 3);
  await server.release(session);
  const failedEvent = await waitForContextEvent(server, session, 'context.save_failed');
  assert.match(String(failedEvent.detail.reason), /more than 1073741824 bytes/);
  assert.equal((await readContext(server, id)).version, 1);
  const nextSession = await server.createSession({ contextId: id });
  await runOnPage(nextSession.connectUrl, async page => {
    assert.deepEqual(await findMarks(page, plain), marksWithoutWorker('good'));
  });
  await eventually('staging to be empty', listStagingFolder, left => left.length === 0);
});

test('the stored bytes of a context are encrypted, and are deleted with the context', async () => {
  const { id } = await createContext(server);
  await server.release(await createMarkedSession(id, 'a-mark-that-is-nowhere-else'));
  await waitForVersion(server, id, 1);
  const objectPaths = objectPathsOf(id);
  assert.equal(objectPaths.length, 2, 'an archive and cookies');
  const objectContents = objectPaths.map(path => [path, readFileSync(path)] as const);
  for (const [path, bytes] of objectContents) assert.ok(!bytes.includes('a-mark-that-is-nowhere-else'), path);
  const runningSessionId = await createMarkedSession(id, 'too late');
  assert.equal((await server.api('DELETE', `/v1/browsers/contexts/${id}`)).status, 204);
  await eventually(
    'the objects to be gone',
    () => objectPathsOf(id),
    left => left.length === 0,
  );
  await server.release(runningSessionId);
  await eventually('staging to be empty', listStagingFolder, left => left.length === 0);
  assert.deepEqual(objectPathsOf(id), [], 'the save of a session of the deleted context was discarded');
  for (const [path, bytes] of objectContents) {
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, bytes);
  }
  const refusedResponse = await server.api('POST', '/v1/browsers/sessions', { body: { contextId: id } });
  assert.equal(
    refusedResponse.body.code,
    'unknown_context',
    'restored bytes cannot be used, because their key was deleted',
  );
  const listResponse = await server.api<Context[]>('GET', '/v1/browsers/contexts');
  assert.ok(!listResponse.body.some(context => context.id === id));
});
