// Faults in a fleet of three hosts in their own network namespaces, with one PostgreSQL database and one S3 store. The
// sessions of a lost host end as ERROR / host_lost, and the host never becomes their owner again. In all other cases
// sessions continue. By default, leases and faults are short, so that the tests take less time. With
// BERTH_TEST_FAULTS=standard, as in a round of `npm run test:slow`, hosts have the default lease, and outages last
// longer.
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { Credits } from '../../contract/credits.ts';
import type { Session } from '../../contract/sessions.ts';
import { CdpClient, expectUpgradeRefusal } from '../harness/cdp.ts';
import { createContext, persistentBody } from '../harness/contexts.ts';
import { addressAt } from '../harness/fleet.ts';
import { findSessionLeftovers } from '../harness/leftovers.ts';
import { createOwnerToken, liftLimits } from '../harness/limits.ts';
import { openPages } from '../harness/pages.ts';
import { listReplays, waitForPlaylist } from '../harness/recordings.ts';
import { REGIONS, startSeparateFleet } from '../harness/separate-fleet.ts';
import type { CreatedSession, TestServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { isResponsive } from './clients.ts';
import { Traffic } from './traffic.ts';

const isStandard = process.env.BERTH_TEST_FAULTS === 'standard';
const LEASE_SECONDS = isStandard ? 12 : 8;
/**
 * With a lease of 12 seconds, the contract promises that a session of a lost host ends within 15 seconds. A busy
 * machine takes longer.
 */
const LOSS_TIMEOUT_MS = 120_000;
/**
 * How long the store is unavailable. This is longer than a segment of a recording, and longer than the time after which
 * a host counts as lost.
 */
const OUTAGE_MS = isStandard ? 60_000 : (LEASE_SECONDS + 1) * 1000;
/** The minimum time for which a host is paused. The pause lasts at least until its sessions have ended. */
const PAUSE_MS_MIN = isStandard ? 30_000 : 0;
const SESSIONS = '/v1/browsers/sessions';
/** The credit that a second of a session costs, in micro-credits. */
const RATE = 1000;
const GRANTED_CREDIT = 1000 * 1_000_000;
/** The `limit` of list requests. It is greater than the number of sessions that this file creates. */
const LIST_LIMIT = 100;

const pages = await openPages({
  '/moving': `<!doctype html><style>div{width:300px;height:300px}</style><div></div><script>
    let n = 0; setInterval(() => { document.querySelector('div').style.background = 'hsl(' + (n += 40) + ',90%,60%)'; }, 250);
  </script>`,
});
const fleet = await startSeparateFleet({
  pages,
  slots: [11, 4, 4],
  env: { BERTH_HOST_LEASE: String(LEASE_SECONDS), BERTH_ADOPT_GRACE: '600', BERTH_RATE_BROWSER_SECOND: String(RATE) },
});
const [one, two, three] = fleet.hosts;
await liftLimits(three);
const token = await createOwnerToken(three);
assert.equal((await three.berth('credits', 'grant', '-', '1000', '--reason', 'for the test')).code, 0);

const runsOn = (host: TestServer, { id }: { readonly id: string }): boolean => host.boxOf(id) !== undefined;
const regionOf = (host: TestServer): string => REGIONS[fleet.hosts.indexOf(host)] ?? '';

/**
 * Creates a session on this host through another host. A restarted host gets sessions only after the other hosts have
 * detected that it is up.
 */
const createSessionOn = (host: TestServer, body: object = {}): Promise<CreatedSession> =>
  eventually(
    'a session to be placed on the host',
    async () => {
      const session = await three.createSession({ keepAlive: true, region: regionOf(host), ...body });
      if (!runsOn(host, session)) await three.release(session.id);
      return session;
    },
    session => runsOn(host, session),
  );

/**
 * Creates sessions one after another, because concurrent starts would not be faster on a machine with two processors.
 */
async function createSessionsOn(host: TestServer, count: number): Promise<CreatedSession[]> {
  const sessions: CreatedSession[] = [];
  while (sessions.length < count) sessions.push(await createSessionOn(host));
  return sessions;
}

async function openMovingPage({ connectUrl }: CreatedSession): Promise<CdpClient> {
  const client = await CdpClient.connect(addressAt(three, connectUrl));
  await client.visit(`${pages.a}/moving`, await client.attachToPage());
  return client;
}

/** Asserts that the third host reports all sessions as ended with the reason host_lost. */
async function assertLost(t: TestContext, sessions: readonly CreatedSession[], faultAt: number): Promise<void> {
  for (const { id } of sessions) {
    const { status, endReason } = await three.waitUntilEnded(id, LOSS_TIMEOUT_MS);
    assert.deepEqual({ status, endReason }, { status: 'ERROR', endReason: 'host_lost' });
  }
  t.diagnostic(
    `${sessions.length} sessions had ended ${secondsSince(faultAt)} after the fault, with leases of ${LEASE_SECONDS} s`,
  );
}

/** Connects through the third host. */
const connectClient = (session: CreatedSession | undefined): Promise<CdpClient> =>
  CdpClient.connect(addressAt(three, session?.connectUrl ?? assert.fail()));

async function reportWhenClosed(
  t: TestContext,
  client: CdpClient | undefined,
  what: string,
  faultAt: number,
): Promise<void> {
  const { code } = (await client?.waitForClose(LOSS_TIMEOUT_MS)) ?? assert.fail();
  t.diagnostic(`clients of the host that was ${what} were closed with ${code} after ${secondsSince(faultAt)}`);
}

/** Sends a request that only the host of the session can handle. Returns the status and the error code. */
async function requestDebug(session: CreatedSession | undefined): Promise<string> {
  const { status, body, text } = await three.api('GET', `${SESSIONS}/${session?.id}/debug`);
  assert.ok([409, 503].includes(status), text);
  return `${status} ${body.code}`;
}

const secondsSince = (startedAt: number): string => `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;

const waitForNoBrowser = (host: TestServer): Promise<unknown> =>
  eventually(
    'no browser to remain on the host',
    () => findSessionLeftovers(host.dataDir).filter(left => left.startsWith('process')),
    left => left.length === 0,
  );

/** Asserts that the host does not own these sessions, and that none of their processes and files remain on the host. */
async function assertStartsAnew(host: TestServer, lost: readonly CreatedSession[]): Promise<void> {
  await eventually(
    'no box or process to remain on the host',
    () => findSessionLeftovers(host.dataDir),
    left => left.length === 0,
  );
  for (const { id, connectUrl } of lost) {
    assert.equal((await expectUpgradeRefusal(addressAt(host, connectUrl))).status, 410);
    assert.equal((await host.read(id)).endReason, 'host_lost');
  }
}

/**
 * Asserts that every session was charged for its duration, to the second, or up to its last metering if it was lost
 * with its host, and that no credit is held.
 */
async function assertCharged(): Promise<void> {
  const { balance } = await eventually(
    'no credit to be held',
    async () =>
      (await three.api<Credits>('GET', `/v1/applications/${three.applicationId}/credits`, { key: token })).body,
    ({ reserved, reservations }) => reserved === 0 && reservations.length === 0,
  );
  const { body: sessions } = await three.api<Session[]>('GET', `${SESSIONS}?limit=${LIST_LIMIT}`);
  assert.ok(sessions.length < LIST_LIMIT);
  const costOf = ({ startedAt, endedAt }: Session): number =>
    Math.ceil((Date.parse(endedAt ?? '') - Date.parse(startedAt ?? '')) / 1000) * RATE;
  const sum = (some: readonly Session[]): number => some.reduce((total, session) => total + costOf(session), 0);
  const leastCharge = sum(sessions.filter(({ endReason }) => endReason !== 'host_lost'));
  const chargedCredit = GRANTED_CREDIT - balance;
  assert.ok(
    chargedCredit >= leastCharge && chargedCredit < sum(sessions),
    `${chargedCredit} of ${leastCharge} to ${sum(sessions)}`,
  );
}

async function assertNothingRuns(): Promise<void> {
  const openSessionsResponse = await three.api<Session[]>('GET', `${SESSIONS}?status=RUNNING,PENDING`);
  assert.deepEqual(openSessionsResponse.body, []);
}

test('sessions of a killed host and of a host without its database end with host_lost, and recordings, slots and credit stay usable', async t => {
  const context = await createContext(three);
  const savingSession = await createSessionOn(one, persistentBody(context.id));
  const recordedSession = await createSessionOn(one);
  const otherSessions = [recordedSession, ...(await createSessionsOn(one, 8))];
  const sessionsWithoutDatabase = await createSessionsOn(two, 2);
  const keptSession = await createSessionOn(three);
  const client = await openMovingPage(recordedSession);
  const [film] = await eventually(
    'a part of the recording to be stored',
    () => listReplays(three, recordedSession.id),
    found => found.length > 0,
  );
  assert.ok(film);
  const faultAt = performance.now();
  await one.kill('SIGKILL');
  const { code } = await client.waitForClose();
  t.diagnostic(`the clients of the killed host were closed with ${code} after ${secondsSince(faultAt)}`);
  fleet.setDatabaseReaches(two, false);
  try {
    const debugRequest = requestDebug(savingSession);
    await assertLost(t, [savingSession, ...otherSessions, ...sessionsWithoutDatabase], faultAt);
    t.diagnostic(`a request for a session of the killed host got ${await debugRequest} meanwhile`);
    await waitForNoBrowser(two);
    const refusedResponse = await two.api('GET', `${SESSIONS}/${keptSession.id}`);
    assert.equal(refusedResponse.status, 503, refusedResponse.text);
    t.diagnostic(`requests to the host without its database got 503 ${refusedResponse.body.code}`);
  } finally {
    fleet.setDatabaseReaches(two, true);
  }
  await waitForPlaylist(three, recordedSession.id, film.pageId, text => text.includes('#EXT-X-ENDLIST'));
  const nextSession = await three.createSession({ keepAlive: true, ...persistentBody(context.id) });
  await three.release(nextSession.id);
  await one.start();
  await assertStartsAnew(one, [savingSession]);
  await assertStartsAnew(two, sessionsWithoutDatabase);
  assert.ok(await isResponsive({ connectUrl: addressAt(two, keptSession.connectUrl) }));
  await two.release(keptSession.id);
  await assertNothingRuns();
  await assertCharged();
});

test('sessions of a disconnected host and of a paused host end with host_lost, and both hosts stop their browsers before they get new sessions', async t => {
  const cutSessions = await createSessionsOn(one, 2);
  const pausedSessions = await createSessionsOn(two, 2);
  const [cutClient, pausedClient] = await Promise.all([cutSessions[0], pausedSessions[0]].map(connectClient));
  const faultAt = performance.now();
  const closeReports = Promise.all([
    reportWhenClosed(t, cutClient, 'cut off', faultAt),
    reportWhenClosed(t, pausedClient, 'paused', faultAt),
  ]);
  fleet.setPlugged(one, false);
  process.kill(two.pid, 'SIGSTOP');
  try {
    const debugRequests = Promise.all([cutSessions[0], pausedSessions[0]].map(session => requestDebug(session)));
    await waitForNoBrowser(one);
    t.diagnostic(`the host that was cut off had ended its browsers after ${secondsSince(faultAt)}`);
    await assertLost(t, [...cutSessions, ...pausedSessions], faultAt);
    t.diagnostic(`requests for their sessions got ${(await debugRequests).join(' and ')} meanwhile`);
    await setTimeout(Math.max(0, PAUSE_MS_MIN - (performance.now() - faultAt)));
  } finally {
    fleet.setPlugged(one, true);
    process.kill(two.pid, 'SIGCONT');
  }
  await closeReports;
  await assertStartsAnew(one, cutSessions);
  await assertStartsAnew(two, pausedSessions);
  await assertNothingRuns();
});

test('when PostgreSQL restarts while the object store is unavailable, clients continue, no session is lost, and a recording is complete afterwards', async t => {
  const recordedSession = await createSessionOn(one);
  const sessions = [recordedSession, await createSessionOn(two), await createSessionOn(three)];
  const clients = await Promise.all(sessions.map(({ connectUrl }) => CdpClient.connect(addressAt(two, connectUrl))));
  const assertAllRespond = async (): Promise<void> => {
    for (const client of clients) assert.ok((await client.send('Browser.getVersion')).product);
  };
  await openMovingPage(recordedSession);
  const [film] = await eventually(
    'a part of the recording to be stored',
    () => listReplays(three, recordedSession.id),
    found => found.length > 0,
  );
  assert.ok(film);
  const faultAt = performance.now();
  fleet.setPlugged('store', false);
  try {
    await fleet.database.stop();
    await assertAllRespond();
    const refusedResponse = await two.api('GET', SESSIONS);
    assert.equal(refusedResponse.status, 503, refusedResponse.text);
    t.diagnostic(`requests meanwhile got 503 ${refusedResponse.body.code}`);
    await fleet.database.start();
    await eventually('a create to succeed', async () => {
      const createResponse = await three.api<CreatedSession>('POST', SESSIONS, { body: {} });
      if (createResponse.status === 201) await three.release(createResponse.body.id);
      return createResponse.status === 201;
    });
    t.diagnostic(`creates succeeded again ${secondsSince(faultAt)} after PostgreSQL was stopped`);
    await setTimeout(OUTAGE_MS);
    await assertAllRespond();
    for (const { id } of sessions) {
      assert.equal((await two.read(id)).status, 'RUNNING');
      assert.equal((await two.release(id)).status, 'COMPLETED');
    }
  } finally {
    fleet.setPlugged('store', true);
  }
  const storeBackAt = performance.now();
  const text = await waitForPlaylist(three, recordedSession.id, film.pageId, list => list.includes('#EXT-X-ENDLIST'));
  t.diagnostic(`the recording was complete ${secondsSince(storeBackAt)} after the store was up again`);
  const segmentSeconds = [...text.matchAll(/#EXTINF:([\d.]+)/g)].map(([, length]) => Number(length));
  const totalSeconds = segmentSeconds.reduce((sum, length) => sum + length, 0);
  assert.ok(totalSeconds * 1000 >= OUTAGE_MS, `${totalSeconds} s`);
  const [{ gaps = [] } = {}] = await listReplays(three, recordedSession.id);
  assert.deepEqual(
    gaps.filter(({ startTimeMs }) => startTimeMs > 0),
    [],
  );
  await assertNothingRuns();
});

const readHostId = async (host: TestServer): Promise<string> => {
  const listResult = await three.berth('hosts', 'list', '--json');
  const hosts: Array<{ id: string; region: string }> = JSON.parse(listResult.stdout);
  const found = hosts.find(({ region }) => region === regionOf(host));
  assert.ok(found, listResult.stderr);
  return found.id;
};

test('a host that is drained and stopped under load gets no new sessions, no request fails, and the host accepts sessions after a restart', async t => {
  const keptSession = await createSessionOn(one);
  const id = await readHostId(one);
  const traffic = new Traffic(fleet);
  t.after(() => traffic.end());
  assert.equal((await two.berth('hosts', 'drain', id, '--wait', '1')).code, 1, 'the host still has a session');
  const newSessions = await traffic.waitForSessions(3);
  for (const session of newSessions) assert.ok(!runsOn(one, session));
  const pendingDrain = two.berth('hosts', 'drain', id, '--wait', '60');
  await two.release(keptSession.id);
  assert.equal((await pendingDrain).code, 0);
  assert.equal((await two.berth('hosts', 'remove', id)).code, 1, 'it lives');
  assert.equal(await one.kill('SIGINT'), 0);
  const { requests, failures } = await traffic.end();
  t.diagnostic(`${requests} requests meanwhile`);
  assert.deepEqual(failures, []);
  await one.start();
  await three.release((await createSessionOn(one)).id);
  await assertNothingRuns();
});

test('no session is lost when all hosts are restarted one after another under load', async t => {
  const keptSessions = [await createSessionOn(one), await createSessionOn(two), await createSessionOn(three)];
  for (const { connectUrl } of keptSessions) {
    const client = await CdpClient.connect(connectUrl);
    await client.evaluate('globalThis.kept = 7', await client.attachToPage());
    await client.close();
  }
  const traffic = new Traffic(fleet, { isPatient: true });
  t.after(() => traffic.end());
  for (const host of fleet.hosts) {
    const stoppedAt = performance.now();
    assert.equal(await host.kill('SIGTERM'), 0);
    const [waitingSession] = keptSessions.filter(session => runsOn(host, session));
    assert.ok(waitingSession);
    const otherHost = host === one ? two : one;
    const debugRequest = eventually(
      'a request for its session to be answered',
      async () => {
        const { status, text } = await otherHost.api('GET', `${SESSIONS}/${waitingSession.id}/debug`);
        if (status !== 200 && status !== 503)
          throw new Error(`${text} ${(await otherHost.read(waitingSession.id)).endReason}`);
        return status;
      },
      status => status === 200,
    );
    debugRequest.catch(() => {}); // awaited below
    await host.start();
    await debugRequest;
    t.diagnostic(`${regionOf(host)} was ready again after ${secondsSince(stoppedAt)}`);
    await traffic.waitForSessions(1);
  }
  const { requests, repeatReasons, failures } = await traffic.end();
  t.diagnostic(
    `${requests} requests meanwhile; ${repeatReasons.length} were sent again: ${[...new Set(repeatReasons)].join(', ')}`,
  );
  for (const { id, connectUrl } of keptSessions) {
    assert.equal((await two.read(id)).status, 'RUNNING');
    const client = await CdpClient.connect(connectUrl);
    assert.equal(await client.evaluate('globalThis.kept', await client.attachToPage()), 7);
    await client.close();
    await two.release(id);
  }
  assert.deepEqual(failures, []);
  await assertNothingRuns();
});
