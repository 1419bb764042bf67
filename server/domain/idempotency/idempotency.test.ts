// The database table is tested in tests/engines. Here it is replaced by a map, so that other processes and crashes can
// be simulated.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import type { IdempotencyRow, IdempotencyRows } from '../../engines/store/rows/idempotency.ts';
import { isFault } from '../../kit/fault.ts';
import type { ApplicationId, HostId, SessionId } from '../../kit/ids.ts';
import { Secret } from '../../kit/secret.ts';
import { Idempotency, type Run, type WriteRequest } from './idempotency.ts';

const SECOND_MS = 1000;
const [HERE, ELSEWHERE] = ['here', 'elsewhere'] as [HostId, HostId];
const SESSION = 'session' as SessionId;
const WRITE: WriteRequest = {
  owner: 'app' as ApplicationId,
  key: 'k',
  operation: 'createSession',
  path: '/v1/browsers/sessions',
  body: { keepAlive: true },
  isAtomic: true,
};

class IdempotencyTable implements IdempotencyRows {
  readonly rows = new Map<string, IdempotencyRow>();
  begunCount = 0;

  async begin(row: IdempotencyRow): Promise<{ began: true } | { existing: IdempotencyRow }> {
    const existing = this.rows.get(row.keyDigest.toString('hex'));
    if (existing) return { existing };
    this.begunCount++;
    this.rows.set(row.keyDigest.toString('hex'), row);
    return { began: true };
  }

  async keep({ keyDigest }: IdempotencyRow, kept: NonNullable<IdempotencyRow['kept']>): Promise<void> {
    this.change({ kept }, keyDigest.toString('hex'));
  }

  async release({ keyDigest }: IdempotencyRow): Promise<void> {
    this.rows.delete(keyDigest.toString('hex'));
  }

  async sweep(): Promise<number> {
    return 0;
  }

  change(more: Partial<IdempotencyRow>, name = [...this.rows.keys()][0] ?? ''): void {
    const row = this.rows.get(name);
    if (row) this.rows.set(name, { ...row, ...more });
  }
}

const clock = new TestClock();
const callerController = new AbortController();
const { signal } = callerController;

function createProcesses() {
  const rows = new IdempotencyTable();
  const isLiving = (): boolean => true;
  const at = (host: HostId): Idempotency =>
    new Idempotency({ rows, host, isLiving, secret: new Secret('s'.repeat(32)), clock });
  return { rows, here: at(HERE), elsewhere: at(ELSEWHERE), at };
}

async function beginFirst(idempotency: Idempotency, write = WRITE): Promise<Run> {
  const beginResult = await idempotency.begin(write, signal);
  assert.ok('run' in beginResult, 'it is the first');
  return beginResult.run;
}

const isConflict = (words: RegExp) => (error: unknown) =>
  isFault(error, 'idempotency_conflict') && words.test(error.message);

async function waitUntilIdle(): Promise<void> {
  for (let count = 0; count < 20; count++) await new Promise(resolve => setImmediate(resolve));
}

test('returns the response of the first request to identical requests, and does not store the request body', async () => {
  const { here, rows } = createProcesses();
  const run = await beginFirst(here);
  const laterRequests = [1, 2, 3].map(() => here.begin(WRITE, signal));
  await waitUntilIdle();
  await run.keep({ body: { id: 'x' } });
  for (const other of laterRequests) assert.deepEqual(await other, { again: { kept: { body: { id: 'x' } } } });
  assert.equal(rows.begunCount, 1);
  assert.doesNotMatch(JSON.stringify([...rows.rows.values()]), /keepAlive/);
});

test('runs the next identical request if the first request was refused', async () => {
  const { here, rows } = createProcesses();
  const run = await beginFirst(here);
  const laterRequests = [here.begin(WRITE, signal), here.begin(WRITE, signal)];
  await waitUntilIdle();
  await run.release();
  const next = await Promise.race(laterRequests);
  assert.ok('run' in next);
  await next.run.keep({});
  const outcomes = await Promise.all(laterRequests);
  assert.equal(outcomes.filter(outcome => 'again' in outcome).length, 1);
  assert.equal(rows.begunCount, 2);
});

test('refuses a different request with the same key, even while the first request is running', async () => {
  const { here } = createProcesses();
  const run = await beginFirst(here);
  for (const other of [{ body: {} }, { path: '/v1/sessions' }, { operation: 'startSession' }])
    await assert.rejects(here.begin({ ...WRITE, ...other }, signal), isConflict(/different request/));
  await run.keep({});
  await assert.rejects(here.begin({ ...WRITE, body: {} }, signal), isConflict(/different request/));
  await beginFirst(here, { ...WRITE, key: 'another key', body: {} });
});

test('refuses a waiting identical request after 30 seconds, or when its own caller disconnects', async () => {
  const { here } = createProcesses();
  const run = await beginFirst(here);
  const lateRequest = here.begin(WRITE, signal);
  const leavingController = new AbortController();
  const leavingRequest = here.begin(WRITE, leavingController.signal);
  leavingRequest.catch(() => {});
  lateRequest.catch(() => {});
  await waitUntilIdle();
  leavingController.abort(new Error('gone'));
  await assert.rejects(leavingRequest, isConflict(/is still running/));
  clock.advance(30 * SECOND_MS);
  await assert.rejects(lateRequest, isConflict(/is still running/));
  run.abandon();
});

test('polls for the response of an identical request that is running in another process, and returns the response', async () => {
  const { here, elsewhere } = createProcesses();
  const run = await beginFirst(elsewhere);
  const waitingRequest = here.begin(WRITE, signal);
  await waitUntilIdle();
  clock.advance(250);
  await waitUntilIdle();
  await run.keep({ body: {} });
  clock.advance(250);
  assert.deepEqual(await waitingRequest, { again: { kept: { body: {} } } });
});

test('after a crash, returns a session that was created, repeats a request that had no effect, and refuses a request whose effect is unknown', async () => {
  const processesWithSession = createProcesses();
  await beginFirst(processesWithSession.here);
  processesWithSession.rows.change({ sessionId: SESSION });
  assert.deepEqual(await processesWithSession.at(HERE).begin(WRITE, signal), { again: { sessionId: SESSION } });
  const processesWithoutEffect = createProcesses();
  await beginFirst(processesWithoutEffect.here);
  await beginFirst(processesWithoutEffect.at(HERE));
  assert.equal(processesWithoutEffect.rows.begunCount, 2);
  const processesWithUnknownEffect = createProcesses();
  await beginFirst(processesWithUnknownEffect.here, { ...WRITE, isAtomic: false });
  await assert.rejects(
    processesWithUnknownEffect.at(HERE).begin({ ...WRITE, isAtomic: false }, signal),
    isConflict(/interrupted, and may have taken effect/),
  );
});

test('returns the stored session after the first request was abandoned', async () => {
  const { here, rows } = createProcesses();
  const run = await beginFirst(here);
  rows.change({ sessionId: SESSION });
  run.abandon();
  assert.deepEqual(await here.begin(WRITE, signal), { again: { sessionId: SESSION } });
});
