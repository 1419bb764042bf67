// The usage of a session is current while the session is running, is final once the session has ended, and is kept when
// the server is killed. The usage of an application is reported per time step and per agent key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import type { Session, SessionUsage } from '../../contract/sessions.ts';
import type { ApplicationUsage } from '../../contract/usage.ts';
import { boxProcessesOf, kill } from '../faults/victims.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { BIG_FILE_BYTES, openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const SAVE_INTERVAL_MS = 10_000;

const pages = await openPages({ '/plain': '<!doctype html><title>Plain</title>' });
const server = await startServer({ clock: 'test', pages, env: { BERTH_ENGINE: LIGHT_ENGINE } });

const readUsage = async (id: string): Promise<SessionUsage> => {
  const { usage } = (await server.read(id)) as Session;
  assert.ok(usage, 'the session has a usage');
  return usage;
};

async function download(session: CreatedSession): Promise<void> {
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  await page?.goto(`${pages.a}/plain`);
  await page?.evaluate(
    url => fetch(url, { cache: 'no-store' }).then(response => response.arrayBuffer()),
    `${pages.a}/big`,
  );
  await browser.close();
}

test('a session reports its current usage while running, and its total usage after its end', async () => {
  const session = await server.createSession({ keepAlive: true });
  const usageBefore = await readUsage(session.id);
  await download(session);
  const usageDuring = await readUsage(session.id);
  assert.ok(
    usageDuring.bytesReceived >= usageBefore.bytesReceived + BIG_FILE_BYTES,
    `${usageDuring.bytesReceived} bytes`,
  );
  assert.ok(usageDuring.bytesSent > usageBefore.bytesSent);
  // A host without cgroups for boxes counts neither CPU time nor memory.
  if (usageDuring.cpuSeconds !== undefined)
    assert.ok(usageDuring.cpuSeconds > (usageBefore.cpuSeconds ?? 0) && usageDuring.cpuSeconds < 600);
  if (usageDuring.peakMemoryBytes !== undefined)
    assert.ok(usageDuring.peakMemoryBytes > 10_000_000, `${usageDuring.peakMemoryBytes}`);
  await server.release(session.id);
  const finalUsage = await readUsage(session.id);
  assert.ok(finalUsage.bytesReceived >= usageDuring.bytesReceived);
  assert.ok((finalUsage.cpuSeconds ?? 0) >= (usageDuring.cpuSeconds ?? 0));
  assert.deepEqual(await readUsage(session.id), finalUsage);
  const { body } = await server.api<Session[]>('GET', '/v1/browsers/sessions');
  assert.ok(
    body.every(one => one.usage === undefined),
    'a list has no usage',
  );
});

test('the usage of a session is kept when the server is killed, and counting continues', async () => {
  const session = await server.createSession({ keepAlive: true });
  await download(session);
  const savedUsage = await eventually(
    'the usage to be saved',
    async () => {
      await server.advance(SAVE_INTERVAL_MS);
      return readUsage(session.id);
    },
    ({ bytesReceived }) => bytesReceived >= BIG_FILE_BYTES,
  );
  await server.advance(SAVE_INTERVAL_MS);
  await server.restart('SIGKILL');
  const usageAfter = await readUsage(session.id);
  assert.ok(
    usageAfter.bytesReceived >= savedUsage.bytesReceived,
    `${usageAfter.bytesReceived} of ${savedUsage.bytesReceived}`,
  );
  assert.ok((usageAfter.cpuSeconds ?? 0) >= (savedUsage.cpuSeconds ?? 0));
  await download(session);
  await server.release(session.id);
  const finalUsage = await readUsage(session.id);
  assert.ok(finalUsage.bytesReceived >= savedUsage.bytesReceived + BIG_FILE_BYTES, `${finalUsage.bytesReceived} bytes`);
  assert.ok((finalUsage.cpuSeconds ?? 0) >= (usageAfter.cpuSeconds ?? 0));
});

const HOUR_MS = 3_600_000;
const token = await createOwnerToken(server);

async function readApplicationUsage(query: Readonly<Record<string, string>>): Promise<ApplicationUsage> {
  const path = `/v1/applications/${server.applicationId}/usage?${new URLSearchParams(query)}`;
  const usageResponse = await server.api<ApplicationUsage>('GET', path, { key: token });
  assert.equal(usageResponse.status, 200, usageResponse.text);
  return usageResponse.body;
}

test('the usage of an application is reported per time step and per agent key, and stays the same after hourly counts are aggregated', async () => {
  const sessions = (await server.api<Session[]>('GET', '/v1/browsers/sessions')).body;
  const crashingSession = await server.createSession({ keepAlive: true });
  kill(boxProcessesOf(server, crashingSession.id).browser);
  await server.waitUntilEnded(crashingSession.id);
  const now = Date.parse(crashingSession.createdAt);
  const firstCreatedAt = sessions.at(-1)?.createdAt ?? crashingSession.createdAt;
  const period = { from: firstCreatedAt, to: new Date(now + 1).toISOString() };
  const dailyUsage = await readApplicationUsage(period);
  const { total, keys } = dailyUsage;
  assert.equal(total.created, sessions.length + 1);
  assert.deepEqual(total.endReasons, { released: sessions.length, crashed: 1 });
  assert.deepEqual([total.ended, total.failed, total.peakRunning], [sessions.length + 1, 1, 1]);
  assert.ok(total.bytesReceived >= 2 * BIG_FILE_BYTES && total.browserSeconds > 0);
  assert.ok(total.startMsP50 !== undefined && total.startMsP50 <= Number(total.startMsP95));
  assert.deepEqual(
    keys.map(({ created, name }) => [created, name]),
    [[total.created, 'First key']],
  );
  await server.advance(2 * HOUR_MS);
  await eventually(
    'the hours to be aggregated',
    () => server.log(),
    lines => lines.some(line => line.includes('clock.sum_usage')),
  );
  const { from, to, ...laterUsage } = await readApplicationUsage(period);
  assert.deepEqual(laterUsage, { step: '1d', total, keys, steps: dailyUsage.steps });
  assert.ok(Date.parse(from) <= Date.parse(firstCreatedAt) && now < Date.parse(to));
  const hourlyUsage = await readApplicationUsage({ ...period, step: '1h' });
  assert.deepEqual(hourlyUsage.total.endReasons, total.endReasons);
  assert.equal(
    hourlyUsage.steps[0]?.from,
    new Date(Math.floor(Date.parse(firstCreatedAt) / HOUR_MS) * HOUR_MS).toISOString(),
  );
});

test('a usage period that is empty, malformed or has too many steps is refused', async () => {
  const ask = (query: string) =>
    server.api('GET', `/v1/applications/${server.applicationId}/usage?${query}`, { key: token });
  for (const [query, message] of [
    ['from=2026-11-20T00:00:00.000Z&to=2026-11-20T00:00:00.000Z', /not before/],
    ['from=2026-01-01T00:00:00.000Z&to=2026-11-20T00:00:00.000Z&step=1h', /at most 800/],
    ['from=yesterday', /from/],
    ['step=1m', /step/],
  ] as const) {
    const { status, body } = await ask(query);
    assert.deepEqual([status, body.code], [400, 'invalid_request'], query);
    assert.match(body.message, message);
  }
  assert.equal((await ask('')).status, 200);
});
