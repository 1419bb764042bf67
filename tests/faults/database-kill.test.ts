// PostgreSQL is killed under load. Browsers and their clients are not affected. The API answers with errors and
// recovers. Changes to sessions during the outage are written afterwards.
import assert from 'node:assert/strict';
import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { CdpClient } from '../harness/cdp.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { sendRequest } from '../harness/http.ts';
import { killIfRunning } from '../harness/kill-if-there.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';
import { assertEnded, assertOpenSessionsRespond, releaseAll } from './aftermath.ts';
import { connectPlaywright, firstPage, isResponsive, startFloodingClient } from './clients.ts';
import { boxProcessesOf, isGone, kill, postgresOf } from './victims.ts';

const RECOVERY_TIMEOUT_MS = 120_000;

const pages = await openPages();
const server = await startServer({ pages, env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_SLOTS: '8' } });
afterEach(async () => {
  await waitForReadiness(true);
  await releaseAll(server);
});

const waitForReadiness = (ready: boolean) =>
  eventually(
    `the server to be ${ready ? 'ready' : 'not ready'}`,
    () => server.fetchFromOperator('/readyz').then(({ status }) => status),
    status => status === (ready ? 200 : 503),
    RECOVERY_TIMEOUT_MS,
  );

function runningPostgres() {
  const found = postgresOf(server);
  assert.ok(found, 'PostgreSQL runs');
  return found;
}

/**
 * Suspends the PostgreSQL process if it is idle, and returns whether it was. An idle process holds no lock that another
 * process would wait for.
 */
function stopIfIdle(pid: number): boolean {
  try {
    process.kill(pid, 'SIGSTOP');
    if (/ idle\s*$/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' '))) return true;
    process.kill(pid, 'SIGCONT');
  } catch {
    // The process may have ended, because the server closed its connection.
  }
  return false;
}

/**
 * Waits until every session that the database lists as open is running and answers, and returns the ids of these
 * sessions. The server's view of the database may be slightly outdated, and work in progress may still end a session.
 */
const waitUntilSessionsRespond = async (): Promise<readonly string[]> => {
  const openSessionIds = await eventually(
    'every open session to be running and to answer',
    () => assertOpenSessionsRespond(server).catch(String),
    Array.isArray,
  );
  return Array.isArray(openSessionIds) ? openSessionIds : [];
};

/**
 * Kills PostgreSQL and keeps it down during the work: a new postmaster cannot read PG_VERSION in the data folder. All
 * PostgreSQL processes exit when their postmaster is gone.
 */
async function withoutDatabase(work: () => Promise<void>): Promise<void> {
  const { postmaster } = runningPostgres();
  const versionFile = join(server.dataDir, 'pg/PG_VERSION');
  chmodSync(versionFile, 0o000);
  kill(postmaster);
  try {
    await waitForReadiness(false);
    await work();
    await waitForReadiness(false);
  } finally {
    chmodSync(versionFile, 0o600);
  }
  await waitForReadiness(true);
}

test('CDP traffic and sessions continue when the postmaster is killed under load, and the API recovers', async () => {
  const session = await server.createSession({ keepAlive: true });
  const otherSession = await server.createSession();
  const flood = await startFloodingClient(session);
  const browser = await connectPlaywright(otherSession);
  const page = firstPage(browser);
  await page.goto(`${pages.url}/`);
  await withoutDatabase(async () => {
    const countBefore = flood.responseCount();
    await eventually(
      'thousands of CDP responses without a database',
      () => flood.responseCount() > countBefore + 4_000,
    );
    await page.goto(`${pages.url}/next`);
    assert.equal(await page.title(), 'Next');
    const refusedResponse = await server.api('POST', '/v1/browsers/sessions', { body: {} });
    assert.equal(refusedResponse.status, 503, refusedResponse.text);
    assert.match(refusedResponse.body.message, /database/);
    assert.ok(refusedResponse.body.requestId);
    assert.equal((await sendRequest(`${server.url}/healthz`, {})).status, 200);
  });
  assert.deepEqual((await waitUntilSessionsRespond()).toSorted(), [session.id, otherSession.id].sort());
  await page.goto(`${pages.url}/`);
  assert.equal(await page.title(), 'Home');
  await browser.close();
  await assertEnded(server, otherSession.id, 'COMPLETED', 'client_disconnected');
  const newSession = await server.createSession({ keepAlive: true });
  assert.ok(await isResponsive(newSession));
  await server.release(newSession.id);
  await server.release(session.id);
  await flood.ended;
  await server.waitUntilSettled();
});

test('reads succeed or fail with 5xx when a PostgreSQL backend is killed under load, and PostgreSQL restarts by itself', async () => {
  const session = await server.createSession({ keepAlive: true });
  const flood = await startFloodingClient(session);
  const readAbort = new AbortController();
  const statuses = new Set<number>();
  const readLoop = (async () => {
    while (!readAbort.signal.aborted)
      statuses.add((await server.api('GET', `/v1/browsers/sessions/${session.id}`)).status);
  })();
  await eventually('a read to be answered', () => statuses.has(200));
  const { postmaster, backends, checkpointer } = runningPostgres();
  assert.ok(backends.some(killIfRunning), 'a connection is open');
  // PostgreSQL ends all its other processes before it restarts, so a new checkpointer shows that it has restarted.
  await eventually('PostgreSQL to be running again', () => {
    const found = postgresOf(server);
    return found?.checkpointer !== undefined && found.checkpointer !== checkpointer && found.backends.length > 0;
  });
  readAbort.abort();
  await readLoop;
  assert.equal(runningPostgres().postmaster, postmaster, 'PostgreSQL restarts its processes by itself');
  await waitForReadiness(true);
  assert.ok(
    [...statuses].every(status => status === 200 || status >= 500),
    `${[...statuses]}`,
  );
  assert.deepEqual(await waitUntilSessionsRespond(), [session.id]);
  await server.release(session.id);
  await flood.ended;
  await server.waitUntilSettled();
});

test('PostgreSQL is restarted after a kill even if one of its processes was suspended, and the suspended process ends', async () => {
  const session = await server.createSession({ keepAlive: true });
  const suspendedPid = await eventually(
    'an idle process to stop',
    () => runningPostgres().backends.find(stopIfIdle),
    Boolean,
  );
  assert.ok(suspendedPid);
  kill(runningPostgres().postmaster);
  await waitForReadiness(false);
  await waitForReadiness(true);
  assert.ok(isGone(suspendedPid));
  assert.deepEqual(await waitUntilSessionsRespond(), [session.id]);
  assert.ok(await isResponsive(session));
  await server.release(session.id);
  await server.waitUntilSettled();
});

test('changes to sessions during a database outage are written to their rows afterwards', async () => {
  const crashingSession = await server.createSession({ keepAlive: true });
  const leavingSession = await server.createSession();
  const remainingSession = await server.createSession();
  const releasedSession = await server.createSession({ keepAlive: true });
  const release = () =>
    server.api('POST', `/v1/browsers/sessions/${releasedSession.id}`, { body: { status: 'REQUEST_RELEASE' } });
  const leavingClient = await CdpClient.connect(leavingSession.connectUrl);
  const remainingClient = await CdpClient.connect(remainingSession.connectUrl);
  const watchingClient = await CdpClient.connect(crashingSession.connectUrl);
  await withoutDatabase(async () => {
    const { browser } = boxProcessesOf(server, crashingSession.id);
    kill(browser);
    await eventually('the browser to be gone', () => isGone(browser));
    await leavingClient.close();
    const { status } = await release();
    assert.ok(status >= 500, `a release that was not stored was confirmed: ${status}`);
  });
  assert.equal((await watchingClient.waitForClose()).code, 4002);
  await assertEnded(server, crashingSession.id, 'ERROR', 'crashed');
  await assertEnded(server, leavingSession.id, 'COMPLETED', 'client_disconnected');
  assert.ok(remainingClient.isOpen);
  assert.equal((await server.read(remainingSession.id)).status, 'RUNNING');
  // The refused release had no effect, or was carried out later. In both cases it is correct to repeat it.
  await eventually('the release to be accepted', async () => (await release()).status < 500);
  await assertEnded(server, releasedSession.id, 'COMPLETED', 'released');
  await remainingClient.close();
  await assertEnded(server, remainingSession.id, 'COMPLETED', 'client_disconnected');
  await server.waitUntilSettled();
});

for (const afterMs of [5, 200])
  test(`rows, processes and slots agree after PostgreSQL is killed ${afterMs} ms after create and release requests were sent`, async () => {
    const sessions = await Promise.all(Array.from({ length: 2 }, () => server.createSession({ keepAlive: true })));
    const requests = [
      ...Array.from({ length: 2 }, () => server.api('POST', '/v1/browsers/sessions', { body: { keepAlive: true } })),
      ...sessions.map(({ id }) =>
        server.api('POST', `/v1/browsers/sessions/${id}`, { body: { status: 'REQUEST_RELEASE' } }),
      ),
    ];
    await new Promise(resolve => setTimeout(resolve, afterMs));
    const { postmaster } = runningPostgres();
    kill(postmaster);
    const responses = await withTimeLimit('every answer', Promise.all(requests), 60_000);
    for (const { status } of responses) assert.ok(status === 200 || status === 201 || status >= 500, `${status}`);
    await eventually('a new postmaster to be running', () => {
      const found = postgresOf(server);
      return found !== undefined && found.postmaster !== postmaster && found.backends.length > 0;
    });
    await waitForReadiness(true);
    const openSessionIds = await waitUntilSessionsRespond();
    await server.waitUntilSettled(openSessionIds);
    await releaseAll(server);
    await server.waitUntilSettled();
  });
