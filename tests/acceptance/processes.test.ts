// Several processes of one server behind one address, with the embedded database and the disk. Each process has its own
// sessions.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { UploadResponse } from '../../contract/files.ts';
import type { DebugUrls } from '../../contract/live.ts';
import { CdpClient } from '../harness/cdp.ts';
import { findSessionLeftovers } from '../harness/leftovers.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';

const SESSIONS = '/v1/browsers/sessions';
const PROCESS_COUNT = 2;

const env: Record<string, string> = { BERTH_PROCESSES: String(PROCESS_COUNT), BERTH_SLOTS: '4' };
const server = await startServer({ env });

const folderOf = (number: number): string =>
  number === 1 ? server.dataDir : join(server.dataDir, 'processes', String(number));

/** The number of the process that owns the session. */
function processNumberOf({ id }: Pick<CreatedSession, 'id'>): number {
  const box = server.boxOf(id) ?? id;
  const number = [1, 2].find(one => findSessionLeftovers(folderOf(one)).some(left => left.includes(box)));
  return number ?? assert.fail('no process runs the session');
}

/** The process id of the server process with this number, according to the kernel. */
function pidOf(number: number): number {
  const isServerProcess = (pid: string): boolean => {
    try {
      const parentPid = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
      const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
      return Number(parentPid) === server.pid && variables.includes(`BERTH_PROCESS=${number}/${PROCESS_COUNT}`);
    } catch {
      return false;
    }
  };
  return Number(
    readdirSync('/proc').find(name => /^\d+$/.test(name) && isServerProcess(name)) ??
      assert.fail(`there is no server process with the number ${number}`),
  );
}

const isResponsive = async ({ connectUrl }: Pick<CreatedSession, 'connectUrl'>): Promise<boolean> => {
  const client = await CdpClient.connect(connectUrl);
  const { product } = await client.send('Browser.getVersion');
  await client.close();
  return product !== undefined;
};

const isRunning = async ({ id }: Pick<CreatedSession, 'id'>): Promise<boolean> =>
  (await server.read(id)).status === 'RUNNING';

/** Creates a session in each process. The keys are the numbers of the processes. */
async function createSessionInEach(): Promise<ReadonlyMap<number, CreatedSession>> {
  const sessionsByProcess = new Map<number, CreatedSession>();
  for (let count = 0; count < PROCESS_COUNT; count += 1) {
    const session = await server.createSession({ keepAlive: true });
    sessionsByProcess.set(processNumberOf(session), session);
  }
  assert.deepEqual([...sessionsByProcess.keys()].sort(), [1, 2]);
  return sessionsByProcess;
}

/**
 * Creates a session in the second process. A restarted process gets sessions only after the other process has detected
 * that it is running again.
 */
async function createSessionInSecond(): Promise<CreatedSession> {
  let session: CreatedSession | undefined;
  await eventually('a session in the second process', async () => {
    session = await server.createSession({ keepAlive: true });
    const number = processNumberOf(session);
    if (number !== 2) await server.release(session.id);
    return number === 2;
  });
  return session ?? assert.fail('no session was created in the second process');
}

const sessions = await createSessionInEach();
const [first, second] = [sessions.get(1), sessions.get(2)];
assert.ok(first && second);
const bothSessions: readonly CreatedSession[] = [first, second];

test('each session can be reached through every process at the same address', async () => {
  const bytes = randomBytes(50_000);
  for (let round = 0; round < 2 * PROCESS_COUNT; round += 1)
    for (const { id, connectUrl } of bothSessions) {
      assert.ok(await isResponsive({ connectUrl }));
      const path = `${SESSIONS}/${id}`;
      const uploadResponse = await server.api<UploadResponse>(
        'POST',
        `${path}/uploads`,
        await uploadRequest(`${round}.bin`, bytes),
      );
      assert.equal(uploadResponse.status, 200, uploadResponse.text);
      const debugResponse = await server.api<DebugUrls>('GET', `${path}/debug`);
      assert.equal(debugResponse.status, 200, debugResponse.text);
    }
});

test('a killed process is restarted and continues its sessions, and the sessions of the other process are not affected', async () => {
  const killedPid = pidOf(2);
  process.kill(killedPid, 'SIGKILL');
  assert.ok(await isRunning(first));
  await eventually(
    'the session of the other process to respond',
    () => isResponsive(first).catch(() => false),
    Boolean,
  );
  await eventually(
    'the session of the killed process to respond again',
    () => isResponsive(second).catch(() => false),
    Boolean,
  );
  assert.notEqual(pidOf(2), killedPid);
  for (const session of bothSessions) assert.ok(await isRunning(session));
});

test('all sessions continue after a SIGTERM and a restart', async () => {
  assert.equal(await server.kill('SIGTERM'), 0);
  await server.start();
  for (const session of [first, second]) assert.ok(await isResponsive(session));
  assert.equal((await server.release(second.id)).status, 'COMPLETED');
  await server.waitUntilSettled([first.id, server.boxOf(first.id) ?? '']);
});

test('when the server restarts with fewer processes, sessions of the removed process end, and sessions of the first process continue', async () => {
  const newSession = await createSessionInSecond();
  await server.kill('SIGTERM');
  env.BERTH_PROCESSES = '1';
  await server.start();
  const endedSession = await server.waitUntilEnded(newSession.id);
  assert.equal(endedSession.endReason, 'service_restart');
  assert.deepEqual(findSessionLeftovers(folderOf(2)), []);
  assert.ok(await isResponsive(first));
  await server.release(first.id);
});
