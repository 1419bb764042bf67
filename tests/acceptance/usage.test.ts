// What a session used: current while it runs, final when it has ended, and kept when the server is killed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import type { Session, SessionUsage } from '../../contract/sessions.ts';
import { BIG_BYTES, openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const SAVE_MS = 10_000;

const pages = await openPages({ '/plain': '<!doctype html><title>Plain</title>' });
const server = await startServer({ clock: 'test', pages });

const usageOf = async (id: string): Promise<SessionUsage> => {
  const { usage } = (await server.read(id)) as Session;
  assert.ok(usage, 'the session has a usage');
  return usage;
};

async function download(session: CreatedSession): Promise<void> {
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  await page?.goto(`${pages.a}/plain`);
  await page?.evaluate(url => fetch(url, { cache: 'no-store' }).then(answer => answer.arrayBuffer()), `${pages.a}/big`);
  await browser.close();
}

test('a session shows what it has used, more as it goes on, and the whole when it has ended', async () => {
  const session = await server.createSession({ keepAlive: true });
  const before = await usageOf(session.id);
  await download(session);
  const during = await usageOf(session.id);
  assert.ok(during.bytesReceived >= before.bytesReceived + BIG_BYTES, `${during.bytesReceived} bytes`);
  assert.ok(during.bytesSent > before.bytesSent);
  // A host without cgroups for boxes counts neither.
  if (during.cpuSeconds !== undefined)
    assert.ok(during.cpuSeconds > (before.cpuSeconds ?? 0) && during.cpuSeconds < 600);
  if (during.peakMemoryBytes !== undefined) assert.ok(during.peakMemoryBytes > 10_000_000, `${during.peakMemoryBytes}`);
  await server.release(session.id);
  const final = await usageOf(session.id);
  assert.ok(final.bytesReceived >= during.bytesReceived);
  assert.ok((final.cpuSeconds ?? 0) >= (during.cpuSeconds ?? 0));
  assert.deepEqual(await usageOf(session.id), final);
  const { body } = await server.api<Session[]>('GET', '/v1/browsers/sessions');
  assert.ok(
    body.every(one => one.usage === undefined),
    'a list has no usage',
  );
});

test('what a session has used survives the kill of the server, and goes on to be counted', async () => {
  const session = await server.createSession({ keepAlive: true });
  await download(session);
  const saved = await eventually(
    'the usage to be saved',
    async () => {
      await server.advance(SAVE_MS);
      return usageOf(session.id);
    },
    ({ bytesReceived }) => bytesReceived >= BIG_BYTES,
  );
  await server.advance(SAVE_MS);
  await server.restart('SIGKILL');
  const after = await usageOf(session.id);
  assert.ok(after.bytesReceived >= saved.bytesReceived, `${after.bytesReceived} of ${saved.bytesReceived}`);
  assert.ok((after.cpuSeconds ?? 0) >= (saved.cpuSeconds ?? 0));
  await download(session);
  await server.release(session.id);
  const final = await usageOf(session.id);
  assert.ok(final.bytesReceived >= saved.bytesReceived + BIG_BYTES, `${final.bytesReceived} bytes`);
  assert.ok((final.cpuSeconds ?? 0) >= (after.cpuSeconds ?? 0));
});
