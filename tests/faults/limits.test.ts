// Sessions that exceed their memory or disk limit. A page that exceeds the memory limit loses only its renderer. If a
// browser or a session folder exceeds a limit, its own session ends with the reason, and no other session does.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { afterEach, test } from 'node:test';
import type { SessionEventPage } from '../../contract/events.ts';
import { CdpClient } from '../harness/cdp.ts';
import { openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { withTimeLimit } from '../harness/until.ts';
import { assertEnded, releaseAll } from './aftermath.ts';
import { connectPlaywright, contextOf, isResponsive } from './clients.ts';
import { boxProcessesOf } from './victims.ts';

const MIB = 1024 ** 2;
const MEMORY_BYTES_MAX = 500 * MIB;
/**
 * A small limit, because all files may be written before the folder is measured. If the data folder is in memory, these
 * files count as memory, and so do the files in the browser's cache.
 */
const DISK_BYTES_MAX = 100 * MIB;
const FILE_BYTES = 30 * MIB;
const END_TIMEOUT_MS = 60_000;
/** A script that allocates and touches memory endlessly. */
const ALLOCATION_SCRIPT = 'const kept = []; for (;;) kept.push(new Uint8Array(4e7).fill(1))';

const pages = await openPages({
  '/file': (_, response) => {
    response.writeHead(200, {
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment; filename="large.bin"',
    });
    response.end(Buffer.alloc(FILE_BYTES, 'x'));
  },
});
const server = await startServer({
  pages,
  env: { BERTH_SLOTS: '3', BERTH_SESSION_MEMORY: `${MEMORY_BYTES_MAX}`, BERTH_SESSION_DISK: `${DISK_BYTES_MAX}` },
});
afterEach(() => releaseAll(server));

const isMemoryBounded = !server.log().some(line => /without .*memory/.test(line));

async function openMemoryHungryPage(session: CreatedSession) {
  const client = await CdpClient.connect(session.connectUrl);
  const { targetId } = await client.send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await client.send('Target.attachToTarget', { targetId, flatten: true });
  const channel = String(sessionId);
  await client.send('Inspector.enable', {}, channel);
  const pendingEvaluation = client.ask('Runtime.evaluate', { expression: ALLOCATION_SCRIPT }, channel);
  pendingEvaluation.catch(() => {});
  return { client, channel, evaluating: pendingEvaluation };
}

/** Asserts that the events about the end of the session contain this reason and actor, and a matching detail. */
async function assertEndEvents({ id }: CreatedSession, reason: string, actor: string, words: RegExp): Promise<void> {
  const path = `/v1/browsers/sessions/${id}/events?type=session.end_decided,session.ended`;
  const { body } = await server.api<SessionEventPage>('GET', path);
  assert.deepEqual(
    body.data.map(({ type }) => type),
    ['session.end_decided', 'session.ended'],
  );
  for (const event of body.data) {
    assert.deepEqual([event.actor.kind, event.detail.status, event.detail.reason], [actor, 'ERROR', reason]);
    assert.match(String(event.detail.detail), words);
  }
}

test('this machine has a memory cgroup', () => {
  assert.ok(isMemoryBounded, 'without a memory cgroup the tests below would prove nothing');
});

test('only the renderer is killed when a page exceeds the memory limit', async () => {
  const session = await server.createSession({ keepAlive: true });
  const neighbour = await server.createSession({ keepAlive: true });
  const browser = await connectPlaywright(session);
  const { client, channel, evaluating: pendingEvaluation } = await openMemoryHungryPage(session);
  await client.waitForEvent('Inspector.targetCrashed', event => event.sessionId === channel);
  assert.ok((await withTimeLimit('the pending command to be answered', pendingEvaluation)).error);
  const page = await contextOf(browser).newPage();
  await page.goto(`${pages.url}/next`);
  assert.equal(await page.title(), 'Next');
  assert.equal((await server.read(session.id)).status, 'RUNNING');
  assert.ok(await isResponsive(neighbour));
  await browser.close();
  client.cut();
});

test('a session ends as out_of_memory when the kernel kills the browser itself', async () => {
  const session = await server.createSession({ keepAlive: true });
  const neighbour = await server.createSession({ keepAlive: true });
  writeFileSync(`/proc/${boxProcessesOf(server, session.id).browser}/oom_score_adj`, '1000');
  const { client } = await openMemoryHungryPage(session);
  assert.equal((await client.waitForClose(END_TIMEOUT_MS)).code, 4002);
  await assertEnded(server, session.id, 'ERROR', 'out_of_memory');
  await assertEndEvents(session, 'out_of_memory', 'browser', /memory limit/);
  assert.ok(await isResponsive(neighbour));
  await server.waitUntilSettled([neighbour.id]);
});

test('an adopted session ends as out_of_memory when the kernel kills its browser', async () => {
  const session = await server.createSession({ keepAlive: true });
  await server.restart();
  writeFileSync(`/proc/${boxProcessesOf(server, session.id).browser}/oom_score_adj`, '1000');
  const { client } = await openMemoryHungryPage(session);
  assert.equal((await client.waitForClose(END_TIMEOUT_MS)).code, 4002);
  await assertEnded(server, session.id, 'ERROR', 'out_of_memory');
  await server.waitUntilSettled();
});

test('a session ends as disk_limit when its folder exceeds the size limit', async () => {
  const session = await server.createSession({ keepAlive: true });
  const neighbour = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(session.connectUrl);
  const page = await client.attachToPage();
  // Each file is smaller than the limit. A navigation that becomes a download ends at once.
  const startDownloads = async (): Promise<void> => {
    for (let times = 0; times < 4 && client.isOpen; times++)
      await client.ask('Page.navigate', { url: `${pages.url}/file?${times}` }, page);
  };
  startDownloads().catch(() => {});
  const { code, reason } = await client.waitForClose(END_TIMEOUT_MS);
  assert.deepEqual({ code, reason }, { code: 4002, reason: 'session ended: disk_limit' });
  await assertEnded(server, session.id, 'ERROR', 'disk_limit');
  await assertEndEvents(session, 'disk_limit', 'service', /exceeded its limit/);
  assert.ok(await isResponsive(neighbour));
  await server.waitUntilSettled([neighbour.id]);
});
