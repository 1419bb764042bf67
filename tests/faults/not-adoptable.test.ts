// A restarted server finds sessions that it cannot adopt. Each ends as ERROR / service_restart, and its remains are
// removed. A foreign process that reuses the pid of a dead process is not touched.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, test } from 'node:test';
import { openStore } from '../../server/engines/store/open-store.ts';
import { systemClock } from '../../server/kit/clock.ts';
import type { SessionId } from '../../server/kit/ids.ts';
import type { JsonObject } from '../../server/kit/json.ts';
import { silentLog } from '../../server/kit/log.ts';
import { findSessionLeftovers, installIdOf } from '../harness/leftovers.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { assertEnded, releaseAll } from './aftermath.ts';
import { isResponsive } from './clients.ts';
import { type BoxProcesses, boxProcessesOf, isGone, kill, waitUntilGone } from './victims.ts';

const server = await startServer({ env: { BERTH_SLOTS: '9' } });
afterEach(async () => {
  if (!(await isUp())) await server.start();
  await releaseAll(server);
});

const isUp = (): Promise<boolean> =>
  server.api('GET', '/healthz').then(
    () => true,
    () => false,
  );

const folderOf = (session: string): string => join(server.dataDir, 'sessions', session);

interface DamagedSession {
  readonly session: CreatedSession;
  readonly box: BoxProcesses;
}

/** Ways to damage a session while no server is running. */
const DAMAGES: Readonly<Record<string, (damagedSession: DamagedSession) => unknown>> = {
  'its browser was killed': async ({ box }) => {
    kill(box.browser);
    await waitUntilGone(box.leader);
  },
  'its browser does not answer': ({ box }) => kill(box.browser, 'SIGSTOP'),
  'its browser was started before a restart of the machine': ({ session }) =>
    changeBox(session.id, { bootId: '00000000-0000-4000-8000-000000000000' }),
  'the note about its box was removed': ({ session }) => rmSync(join(folderOf(session.id), 'notes/box.json')),
  'the note about its box is empty': ({ session }) => truncateSync(join(folderOf(session.id), 'notes/box.json')),
  'its FIFOs were removed': ({ session }) => rmSync(join(folderOf(session.id), 'notes/in')),
  'the note of its channels was removed': ({ session }) => rmSync(join(folderOf(session.id), 'notes/channels')),
  'its whole folder was moved away': ({ session }) =>
    // The folder is moved instead of removed. The browser is still writing files, so a removal could fail.
    renameSync(folderOf(session.id), join(dirname(server.dataDir), 'aside')),
};

test('sessions that cannot be adopted, for any of eight reasons, end with service_restart, and another session is kept', async () => {
  const keptSession = await server.createSession({ keepAlive: true });
  const create = async (): Promise<DamagedSession> => {
    const session = await server.createSession({ keepAlive: true });
    return { session, box: boxProcessesOf(server, session.id) };
  };
  // The sessions are created one after another, because with eight concurrent starts a create may take too long.
  const damagedSessions = new Map<string, DamagedSession>();
  for (const why of Object.keys(DAMAGES)) damagedSessions.set(why, await create());
  await server.kill();
  for (const [why, one] of damagedSessions) await DAMAGES[why]?.(one);
  for (const { session } of damagedSessions.values())
    assert.ok(findSessionLeftovers(server.dataDir).join().includes(session.id), 'nobody has cleaned up yet');
  await server.start();
  for (const [why, { session, box }] of damagedSessions) {
    const { status, endReason, startedAt } = await server.waitUntilEnded(session.id);
    assert.deepEqual([status, endReason, startedAt], ['ERROR', 'service_restart', session.startedAt], why);
    for (const pid of [box.leader, box.bwrap, box.init, box.browser]) await waitUntilGone(pid);
  }
  assert.ok(await isResponsive(keptSession));
  await server.waitUntilSettled([keptSession.id]);
  assert.ok(await isResponsive(await server.createSession({ keepAlive: true })), 'there are free slots');
});

test('a foreign process that has the recorded pid of a dead box is not killed', async () => {
  const session = await server.createSession({ keepAlive: true });
  const { leader } = boxProcessesOf(server, session.id);
  await server.kill();
  kill(leader);
  await waitUntilGone(leader);
  const foreignProcess = spawn('sleep', ['600'], { stdio: 'ignore' });
  try {
    await changeBox(session.id, { pid: Number(foreignProcess.pid) });
    await server.start();
    await assertEnded(server, session.id, 'ERROR', 'service_restart');
    await server.waitUntilSettled();
    assert.equal(isGone(Number(foreignProcess.pid)), false, 'the foreign process is still running');
  } finally {
    foreignProcess.kill('SIGKILL');
  }
});

/**
 * Changes the box in the row of the session. Writing the pid of another process simulates a pid that the kernel has
 * reused.
 */
async function changeBox(session: string, change: JsonObject): Promise<void> {
  const store = await openStore({ dataDir: server.dataDir, log: silentLog, clock: systemClock });
  try {
    const row = await store.sessions.byId(session as SessionId);
    assert.ok(row?.box, 'the row contains the box of the browser');
    await store.sessions.setBox(row.id, { ...row.box, ...change }, row.updatedAt);
  } finally {
    await store.close();
  }
}

test('a starting server ends processes and removes files of its data folder that belong to no session, and ends no process of another data folder', async () => {
  const keptSession = await server.createSession({ keepAlive: true });
  const strayId = '01a1fa50-5319-7450-a6b3-c787ada50631';
  await server.kill();
  const markedProcess = spawn('sleep', ['600'], {
    stdio: 'ignore',
    env: { ...process.env, BERTH_BOX: `${installIdOf(server.dataDir)}/${strayId}` },
  });
  const foreignProcess = spawn('sleep', ['600'], {
    stdio: 'ignore',
    env: { ...process.env, BERTH_BOX: `00000000/${strayId}` },
  });
  const markedExit = once(markedProcess, 'exit');
  writeFileSync(join(server.dataDir, 'sessions', 'a-file'), 'not a folder');
  await server.start();
  await markedExit;
  assert.equal(isGone(foreignProcess.pid ?? 0), false, 'a process of another data folder is not killed');
  foreignProcess.kill('SIGKILL');
  await once(foreignProcess, 'exit');
  await server.waitUntilSettled([keptSession.id]);
  assert.deepEqual(readdirSync(join(server.dataDir, 'sessions')), [keptSession.id]);
  assert.ok(await isResponsive(keptSession));
});
