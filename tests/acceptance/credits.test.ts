// Credit for sessions with rates above 0: the hold when a session is created, metering while the session is running,
// the end of a session when the credit is used up, metering after a crash of the server, and the reports for callers.
// Uses the test clock.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import type { ErrorBody } from '../../contract/common.ts';
import type { CreditEntryPage, Credits, CreditUsage } from '../../contract/credits.ts';
import type { Session } from '../../contract/sessions.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { killBox } from '../harness/kill-box.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { registerOtherPerson } from '../harness/other-person.ts';
import { BIG_FILE_BYTES, openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { listEvents } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';

const RATE = 1000;
const RATE_MEGABYTE = 100;
/** The credit that is held for a create: the cost of 300 seconds and 10 megabytes. */
const HOLD = 300 * RATE + 10 * RATE_MEGABYTE;
const MINUTE_MS = 60_000;
const RATES = { BERTH_RATE_BROWSER_SECOND: String(RATE), BERTH_RATE_EGRESS_MEGABYTE: String(RATE_MEGABYTE) };

const pages = await openPages({ '/plain': '<!doctype html><title>Plain</title>' });
const server = await startServer({
  clock: 'test',
  pages,
  env: { BERTH_ENGINE: LIGHT_ENGINE, ...RATES, BERTH_REGISTRATION: 'open' },
});
const token = await createOwnerToken(server);
const CREDITS = `/v1/applications/${server.applicationId}/credits`;

const readCredits = async (): Promise<Credits> => {
  const { status, body, text } = await server.api<Credits>('GET', CREDITS, { key: token });
  assert.equal(status, 200, text);
  return body;
};

async function grant(microCredits: number, to = server): Promise<void> {
  const amount = (microCredits / 1_000_000).toFixed(6);
  const { code, stderr } = await to.operate('credits', 'grant', '-', amount, '--reason', 'for the test', '--json');
  assert.equal(code, 0, stderr);
}

/** The number of seconds for which an ended session was charged. */
const secondsOf = ({ startedAt, endedAt }: Session): number =>
  Math.ceil((Date.parse(endedAt ?? '') - Date.parse(startedAt ?? '')) / 1000);

/** The cost of the traffic that Chromium itself may cause. */
const TRAFFIC_COST_MAX = 5 * RATE_MEGABYTE;

test('a create request without credit is refused with 402, starts no session and holds no credit', async () => {
  for (const headers of [{}, { prefer: 'wait=50' }]) {
    const refusal = await server.api<ErrorBody>('POST', '/v1/browsers/sessions', { body: {}, headers });
    assert.deepEqual([refusal.status, refusal.body.code], [402, 'insufficient_credit'], refusal.text);
    assert.deepEqual(refusal.body.details, { required: HOLD, available: 0, unit: 'microcredit' });
    assert.equal(refusal.headers['x-should-retry'], 'false');
  }
  const { body } = await server.api<Session[]>('GET', '/v1/browsers/sessions');
  assert.deepEqual(body, []);
  const { available, reserved, enforced, rates } = await readCredits();
  assert.deepEqual({ available, reserved, enforced }, { available: 0, reserved: 0, enforced: true });
  assert.deepEqual(rates, { browserSecond: RATE, egressMegabyte: RATE_MEGABYTE });
});

test('a create request holds the price of five minutes, and the session is charged by the second', async () => {
  await grant(1_000_000);
  const { id } = await server.createSession({ keepAlive: true });
  const heldCredits = await readCredits();
  assert.deepEqual(
    [heldCredits.reserved, heldCredits.available, heldCredits.balance],
    [HOLD, 1_000_000 - HOLD, 1_000_000],
  );
  const [reservation] = heldCredits.reservations;
  assert.deepEqual(reservation?.purpose, { kind: 'session', id });
  await server.advance(37_300);
  const endedSession = await server.release(id);
  const seconds = secondsOf(endedSession);
  const usedCredit = 1_000_000 - (await readCredits()).balance;
  assert.ok(seconds >= 37, `${seconds}`);
  assert.ok(
    usedCredit >= seconds * RATE && usedCredit <= seconds * RATE + TRAFFIC_COST_MAX,
    `${usedCredit} for ${seconds} s`,
  );
  const { reserved, reservations, thisApplication } = await readCredits();
  assert.deepEqual([reserved, reservations, thisApplication.reserved], [0, [], 0]);
  assert.equal(thisApplication.capturedThisMonth, usedCredit);
});

test('a session with a time limit below five minutes holds credit only for its time limit', async () => {
  const { id } = await server.createSession({ keepAlive: true, timeout: 60 });
  assert.equal((await readCredits()).reserved, 60 * RATE + 10 * RATE_MEGABYTE);
  await server.release(id);
});

test('each minute, the usage of a session including its network traffic is captured, and the hold is extended', async () => {
  const balanceBefore = (await readCredits()).balance;
  const { id, connectUrl } = await server.createSession({ keepAlive: true });
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  await page?.goto(`${pages.a}/plain`);
  await page?.evaluate(
    url => fetch(url, { cache: 'no-store' }).then(response => response.arrayBuffer()),
    `${pages.a}/big`,
  );
  await browser.close();
  await server.advance(MINUTE_MS + 6_000);
  const heldCredits = await eventually('the minute to be captured', readCredits, ({ reservations }) => {
    const [{ captured = 0 } = {}] = reservations;
    return captured >= 60 * RATE;
  });
  const [{ amount = 0, captured = 0 } = {}] = heldCredits.reservations;
  assert.ok(amount - captured >= HOLD && amount - captured <= HOLD + RATE, `${amount} - ${captured}`);
  await server.release(id);
  const endedSession = await server.read(id);
  const seconds = secondsOf(endedSession);
  const bytes = (endedSession.usage?.bytesReceived ?? 0) + (endedSession.usage?.bytesSent ?? 0);
  assert.ok(bytes > BIG_FILE_BYTES);
  const trafficCost = Math.ceil((bytes * RATE_MEGABYTE) / 1_000_000);
  assert.equal(balanceBefore - (await readCredits()).balance, seconds * RATE + trafficCost);
});

test('a session whose hold cannot be extended gets a warning a minute in advance, and then ends with credit_exhausted', async () => {
  const lowCreditServer = await startServer({
    clock: 'test',
    env: { BERTH_ENGINE: LIGHT_ENGINE, ...RATES, BERTH_CREDIT_LOW: '40000' },
  });
  const path = `/v1/applications/${lowCreditServer.applicationId}/credits`;
  const key = await createOwnerToken(lowCreditServer);
  await grant(HOLD + 30_000, lowCreditServer);
  const { id } = await lowCreditServer.createSession({ keepAlive: true });
  const isNoticed = async (): Promise<boolean> => {
    await lowCreditServer.advance(10_000);
    return (await listEvents(lowCreditServer, id, 'session.credit_low')).length > 0;
  };
  await eventually('the notice', isNoticed);
  assert.equal((await lowCreditServer.read(id)).status, 'RUNNING');
  const advanceAndRead = async (): Promise<Session> => {
    await lowCreditServer.advance(10_000);
    return lowCreditServer.read(id);
  };
  const endedSession = await eventually('the session to end', advanceAndRead, ({ endedAt }) => endedAt !== undefined);
  assert.deepEqual([endedSession.status, endedSession.endReason], ['ERROR', 'credit_exhausted']);
  const [notice] = await listEvents(lowCreditServer, id, 'session.credit_low');
  const [decided] = await listEvents(lowCreditServer, id, 'session.end_decided');
  const noticeMs = Date.parse(decided?.time ?? '') - Date.parse(notice?.time ?? '');
  assert.ok(noticeMs >= MINUTE_MS, `${noticeMs} ms of notice`);
  assert.equal((await listEvents(lowCreditServer, id, 'credit.exhausted')).length, 1);
  assert.equal((await listEvents(lowCreditServer, id, 'credit.low')).length, 1);
  const { reserved, balance } = (await lowCreditServer.api<Credits>('GET', path, { key })).body;
  assert.equal(reserved, 0);
  const [usedCredit, seconds] = [HOLD + 30_000 - balance, secondsOf(endedSession)];
  assert.ok(
    usedCredit >= seconds * RATE && usedCredit <= seconds * RATE + TRAFFIC_COST_MAX,
    `${usedCredit} for ${seconds} s`,
  );
});

test('a session is still metered after its server is killed and restarted', async () => {
  await grant(5_000_000);
  const balanceBefore = (await readCredits()).balance;
  const { id } = await server.createSession({ keepAlive: true, timeout: 3600 });
  await server.restart('SIGKILL');
  await server.advance(2 * MINUTE_MS);
  const [{ purpose } = { purpose: undefined }] = (await readCredits()).reservations;
  assert.equal(purpose?.id, id, 'the hold outlives the server');
  const endedSession = await server.release(id);
  const usedCredit = balanceBefore - (await readCredits()).balance;
  const seconds = secondsOf(endedSession);
  assert.ok(
    usedCredit >= seconds * RATE && usedCredit <= seconds * RATE + TRAFFIC_COST_MAX,
    `${usedCredit} for ${seconds} s`,
  );
  assert.equal((await readCredits()).reserved, 0);
});

test('a session whose browser died while the server was down is charged only up to the last recorded usage', async () => {
  const balanceBefore = (await readCredits()).balance;
  const { id } = await server.createSession({ keepAlive: true, timeout: 3600 });
  await server.advance(MINUTE_MS + 6_000);
  const meteredCredits = await eventually('the minute to be captured', readCredits, ({ reservations }) => {
    const [{ captured = 0 } = {}] = reservations;
    return captured >= 60 * RATE;
  });
  await server.kill('SIGKILL');
  killBox(server.dataDir, id);
  await server.start();
  assert.equal((await server.waitUntilEnded(id)).endReason, 'service_restart');
  const { reserved, balance } = await readCredits();
  const [{ captured = 0 } = {}] = meteredCredits.reservations;
  const usedCredit = balanceBefore - balance;
  assert.equal(reserved, 0);
  assert.ok(usedCredit >= captured && usedCredit <= captured + TRAFFIC_COST_MAX, `${usedCredit} of ${captured}`);
});

test('credit entries, usage and the command line show the same amounts', async () => {
  const { body: entries } = await server.api<CreditEntryPage>('GET', `${CREDITS}/entries?limit=100`, { key: token });
  for (const { legs } of entries.data) {
    const sum = Object.values(legs).reduce((all, leg) => all + leg, 0);
    assert.equal(sum, 0);
  }
  const capturedCredit = entries.data.reduce((sum, { legs }) => sum + legs.revenue, 0);
  assert.equal(capturedCredit, (await readCredits()).thisApplication.capturedThisMonth);
  const { body: holds } = await server.api<CreditEntryPage>('GET', `${CREDITS}/entries?type=hold&limit=2`, {
    key: token,
  });
  assert.deepEqual(
    holds.data.map(({ type }) => type),
    ['hold', 'hold'],
  );
  assert.ok(holds.nextCursor);
  for (const by of ['day', 'key'] as const) {
    const { body, text } = await server.api<CreditUsage>('GET', `${CREDITS}/usage?by=${by}`, { key: token });
    const cost = body.data.reduce((sum, row) => sum + row.cost, 0);
    assert.equal(cost, capturedCredit, text);
    assert.ok(
      body.data.some(({ browserSeconds, egressBytes }) => browserSeconds > 0 && egressBytes > BIG_FILE_BYTES),
      text,
    );
  }
  const { stdout } = await server.operate('credits', 'show', '--json');
  const shownCredits = JSON.parse(stdout);
  assert.equal(shownCredits.available, (await readCredits()).available);
  const { stdout: audit } = await server.operate('audit', 'list', '--json');
  const grantEntry = JSON.parse(audit).find(({ action }: { action: string }) => action === 'credit.granted');
  assert.deepEqual(grantEntry.details, { amount: 5_000_000, reason: 'for the test' });
});

test('members of an application can read its credit, but other people and agent keys cannot', async () => {
  for (const [path, key, status] of [
    [CREDITS, null, 401],
    [CREDITS, server.key, 401],
    [`${CREDITS}/usage?from=2026-01-02T00:00:00.000Z&to=2026-01-01T00:00:00.000Z`, token, 400],
    [`${CREDITS}/usage?by=year`, token, 400],
  ] as const) {
    const response = await server.api('GET', path, { key });
    assert.equal(response.status, status, `${path} ${response.text}`);
  }
  const stranger = await registerOtherPerson(server, 'eve@example.com');
  for (const path of [CREDITS, `${CREDITS}/entries`, `${CREDITS}/usage`])
    assert.equal((await stranger.get(path)).status, 404, path);
  const viewer = await registerOtherPerson(server, 'viewer@example.com', 'viewer');
  assert.equal((await viewer.get(CREDITS)).status, 200);
});

for (const [amount, words] of [
  ['0', /expected credits/],
  ['-1', /expected credits|unknown option/],
  ['1e3', /expected credits/],
  ['0.0000001', /expected credits/],
  ['9999999999', /expected credits/],
] as const)
  test(`the command line refuses to grant ${amount} credits`, async () => {
    const { code, stderr } = await server.operate('credits', 'grant', '-', amount, '--reason', 'x');
    assert.equal(code, 2);
    assert.match(stderr, words);
  });
