// A host of a fleet is killed, paused, cut off from the database, restarted or drained. Its sessions end as ERROR / host_lost or
// go on; the others serve; a host that was taken as lost does not come back as the owner of its sessions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Context } from '../../contract/contexts.ts';
import type { Session } from '../../contract/sessions.ts';
import { CdpClient, refusedUpgrade } from '../harness/cdp.ts';
import { createContext, persistent } from '../harness/contexts.ts';
import { at, startFleet } from '../harness/fleet.ts';
import { sessionLeftovers } from '../harness/leftovers.ts';
import { openPages } from '../harness/pages.ts';
import type { CreatedSession, TestServer } from '../harness/server.ts';
import { eventually, soon } from '../harness/until.ts';

/** What the contract promises is 15 s; a machine with much else to do takes longer. */
const LOST_WITHIN_MS = 120_000;

const pages = await openPages();
const fleet = await startFleet({ pages, slots: [4, 4] });
const [one, two] = fleet.hosts;

const runsOn = (host: TestServer, { id }: { readonly id: string }): boolean => host.boxOf(id) !== undefined;

/** Sessions that run on the first host, which is created through the second. */
async function sessionsOnOne(count: number, body: object = {}): Promise<CreatedSession[]> {
  const [here, there]: [CreatedSession[], CreatedSession[]] = [[], []];
  for (let attempt = 0; here.length < count && attempt < 20; attempt += 1) {
    const session = await two.createSession({ keepAlive: true, ...body });
    (runsOn(one, session) ? here : there).push(session);
  }
  for (const { id } of there) await two.release(id);
  assert.equal(here.length, count);
  return here;
}

async function assertLost(sessions: readonly CreatedSession[]): Promise<void> {
  for (const { id } of sessions) {
    const ended = await two.ended(id, LOST_WITHIN_MS);
    assert.equal(ended.status, 'ERROR');
    assert.equal(ended.endReason, 'host_lost');
  }
}

const nothingLeftOf = (host: TestServer): Promise<unknown> =>
  eventually(
    'no box to be left on the host',
    () => sessionLeftovers(host.dataDir),
    left => left.length === 0,
  );

/** The host takes sessions again. */
async function assertServes(host: TestServer): Promise<void> {
  const created: CreatedSession[] = [];
  await eventually(
    'a session to be placed there',
    async () => {
      const session = await two.createSession({ keepAlive: true });
      created.push(session);
      if (created.length > 3) for (const { id } of created.splice(0, 3)) await two.release(id);
      return runsOn(host, session);
    },
    Boolean,
  );
  for (const { id } of created) await two.release(id);
}

test('a killed host: its sessions end, seats and contexts are free, and its next process removes the browsers', async () => {
  const context: Context = await createContext(two);
  const [saving] = await sessionsOnOne(1, persistent(context.id));
  const others = await sessionsOnOne(2);
  assert.ok(saving);
  const client = await CdpClient.connect(at(two, saving.connectUrl));
  await one.kill('SIGKILL');
  await assertLost([saving, ...others]);
  await client.closed;
  const again = await two.createSession({ keepAlive: true, ...persistent(context.id) });
  assert.ok(runsOn(two, again));
  await two.release(again.id);
  assert.equal((await refusedUpgrade(at(two, saving.connectUrl))).status, 410);
  await one.start();
  await nothingLeftOf(one);
  await assertServes(one);
});

test('a host that is restarted keeps its sessions', async () => {
  const [session] = await sessionsOnOne(1);
  assert.ok(session);
  await one.kill('SIGTERM');
  const asked = two.api('GET', `/v1/browsers/sessions/${session.id}/debug`);
  await one.start();
  assert.equal((await asked).status, 200);
  const client = await CdpClient.connect(at(two, session.connectUrl));
  assert.ok((await client.send('Browser.getVersion')).product);
  await client.close();
  assert.equal((await two.read(session.id)).status, 'RUNNING');
  await two.release(session.id);
});

test('a paused host: its sessions end, and when it goes on it ends their browsers and takes new sessions', async () => {
  const sessions = await sessionsOnOne(2);
  process.kill(one.pid, 'SIGSTOP');
  try {
    await assertLost(sessions);
  } finally {
    process.kill(one.pid, 'SIGCONT');
  }
  await nothingLeftOf(one);
  for (const { id, connectUrl } of sessions) {
    assert.equal((await refusedUpgrade(at(one, connectUrl))).status, 410);
    assert.equal((await one.read(id)).endReason, 'host_lost');
  }
  await assertServes(one);
});

test('a host without its database ends its browsers by itself, and joins again when the database is back', async () => {
  const sessions = await sessionsOnOne(2);
  fleet.link.cut();
  try {
    await assertLost(sessions);
    await eventually(
      'the browsers to be gone',
      () => sessionLeftovers(one.dataDir).filter(left => left.startsWith('process')),
      left => left.length === 0,
    );
  } finally {
    fleet.link.mend();
  }
  await nothingLeftOf(one);
  await assertServes(one);
});

test('a drained host gets no sessions, and no request fails meanwhile', async () => {
  const [kept] = await sessionsOnOne(1);
  assert.ok(kept);
  const hosts: Array<{ id: string; url: string }> = JSON.parse((await two.berth('hosts', 'list', '--json')).stdout);
  const host = hosts.find(({ url }) => url === one.url);
  assert.ok(host);
  const drained = await two.berth('hosts', 'drain', host.id, '--wait', '1');
  assert.equal(drained.code, 1, drained.stderr);
  for (let count = 0; count < 6; count += 1) {
    const session = await one.createSession({ keepAlive: true });
    assert.ok(runsOn(two, session));
    await one.release(session.id);
  }
  const waiting = two.berth('hosts', 'drain', host.id, '--wait', '60');
  await two.release(kept.id);
  assert.equal((await soon('the drain to end', waiting)).code, 0);
  assert.equal((await two.berth('hosts', 'undrain', host.id)).code, 0);
  await assertServes(one);
  const living = await two.berth('hosts', 'remove', host.id);
  assert.equal(living.code, 1);
  const open = await two.api<Session[]>('GET', '/v1/browsers/sessions?status=RUNNING,PENDING');
  assert.deepEqual(open.body, []);
});
