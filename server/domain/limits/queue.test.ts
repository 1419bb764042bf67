import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import { isFault } from '../../kit/fault.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import { AdmissionQueue, type AttemptResult } from './queue.ts';
import { refusal, refusalFault } from './refusals.ts';

const SECOND_MS = 1000;
const [A, B, C] = ['a', 'b', 'c'] as [ApplicationId, ApplicationId, ApplicationId];

interface AdmittedCreate {
  readonly got: string;
  readonly waitedMs: number;
}

interface EnterOptions {
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
  readonly max?: number;
}

/** Simulates the responses of the database: free slots on the host and for each application. */
class QueueScene {
  readonly clock = new TestClock();
  readonly queue = new AdmissionQueue<string>(this.clock);
  readonly servedNames: string[] = [];
  readonly freeSlots = new Map<ApplicationId, number>();
  freeHostSlots = 0;
  attemptCount = 0;

  async enter(application: ApplicationId, name: string, options: EnterOptions = {}): Promise<AdmittedCreate> {
    const { waitMs, signal = new AbortController().signal, max = 20 } = options;
    const outcome = await this.queue.enter({
      application,
      signal,
      attempt: async () => this.#try(application, name),
      maxWaiting: async () => max,
      ...(waitMs === undefined ? {} : { waitMs }),
    });
    if ('refused' in outcome) throw refusalFault(outcome.refused, outcome.waited);
    return outcome;
  }

  /** Enters the queue with a create, and returns when the create is waiting. */
  async join(
    application: ApplicationId,
    name: string,
    options: EnterOptions = {},
  ): Promise<{ admission: Promise<AdmittedCreate> }> {
    const sizeBefore = this.queue.size;
    const admission = this.enter(application, name, { waitMs: 50 * SECOND_MS, ...options });
    admission.catch(() => {});
    await waitUntilIdle();
    assert.equal(this.queue.size, sizeBefore + 1, `${name} waits`);
    return { admission };
  }

  async makeRoom(places: number): Promise<void> {
    this.freeHostSlots += places;
    this.queue.noteFreeSlot();
    await waitUntilIdle();
  }

  #try(application: ApplicationId, name: string): AttemptResult<string> {
    this.attemptCount++;
    const own = this.freeSlots.get(application) ?? 100;
    if (own === 0) return { refused: refusal('concurrent', 10, 10) };
    if (this.freeHostSlots === 0) return { refused: refusal('host', 10, 10) };
    this.freeSlots.set(application, own - 1);
    this.freeHostSlots--;
    this.servedNames.push(name);
    return { got: name };
  }
}

/** All decisions are made in memory, so they are complete after a few turns of the event loop. */
async function waitUntilIdle(): Promise<void> {
  for (let count = 0; count < 20; count++) await new Promise(resolve => setImmediate(resolve));
}

const CODE_BY_REASON = { concurrent: 'concurrency_limit', line: 'concurrency_limit', host: 'capacity' } as const;

const refusedWith = (why: keyof typeof CODE_BY_REASON, details: object) => (error: unknown) => {
  assert.ok(isFault(error, CODE_BY_REASON[why]), String(error));
  assert.deepEqual({ ...error.details, ...details }, error.details);
  return true;
};

test('admits a create immediately if there is room, and otherwise refuses a create without waitMs immediately', async () => {
  const scene = new QueueScene();
  scene.freeHostSlots = 1;
  assert.deepEqual(await scene.enter(A, 'one', { waitMs: SECOND_MS }), { got: 'one', waitedMs: 0 });
  await assert.rejects(scene.enter(A, 'two'), refusedWith('host', { limit: 10, used: 10, scope: 'host' }));
});

test('admits creates in the order of arrival, and reports how long each create waited', async () => {
  const scene = new QueueScene();
  const one = await scene.join(A, 'one');
  const two = await scene.join(A, 'two');
  assert.equal(scene.queue.waitingOf(A), 2);
  scene.clock.advance(3 * SECOND_MS);
  await scene.makeRoom(1);
  assert.deepEqual(scene.servedNames, ['one']);
  const { waitedMs } = await one.admission;
  assert.ok(waitedMs >= 3 * SECOND_MS && waitedMs < 20 * SECOND_MS, String(waitedMs));
  await scene.makeRoom(1);
  assert.equal((await two.admission).got, 'two');
  assert.equal(scene.queue.size, 0);
});

test('admits as many waiting creates as there are free slots, in the order of arrival', async () => {
  const scene = new QueueScene();
  for (const name of ['one', 'two', 'three', 'four']) await scene.join(A, name);
  await scene.makeRoom(3);
  assert.deepEqual(scene.servedNames, ['one', 'two', 'three']);
  assert.equal(scene.queue.waitingOf(A), 1);
  scene.queue.close(() => new Error('closed'));
});

test('a new create does not overtake waiting creates, but waits, or is refused for the same reason as the first waiting create', async () => {
  const scene = new QueueScene();
  scene.freeSlots.set(A, 0);
  scene.freeHostSlots = 5;
  await scene.join(A, 'one');
  scene.freeSlots.set(A, 1);
  const attemptsBefore = scene.attemptCount;
  await assert.rejects(
    scene.enter(A, 'hasty'),
    refusedWith('concurrent', { limit: 10, used: 10, scope: 'application' }),
  );
  assert.equal(scene.attemptCount, attemptsBefore, 'the database was not even asked');
  assert.equal((await scene.enter(B, 'other')).got, 'other', 'another application has room of its own');
  void scene.enter(A, 'two', { waitMs: SECOND_MS }).catch(() => {});
  await waitUntilIdle();
  assert.deepEqual(scene.servedNames, ['other', 'one'], 'the head was served when the newcomer joined');
  scene.queue.close(() => new Error('closed'));
});

test('admits waiting creates of several applications in round-robin order, including applications that join later', async () => {
  const scene = new QueueScene();
  for (const name of ['a1', 'a2', 'a3']) await scene.join(A, name);
  for (const name of ['b1', 'b2']) await scene.join(B, name);
  await assert.rejects(scene.enter(C, 'hasty'), refusedWith('host', {}));
  await scene.join(C, 'c1');
  for (let count = 0; count < 6; count++) await scene.makeRoom(1);
  assert.deepEqual(scene.servedNames, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
});

test('admits creates of other applications while one application is at its own limit', async () => {
  const scene = new QueueScene();
  scene.freeSlots.set(A, 0);
  await scene.join(A, 'a1');
  await scene.join(B, 'b1');
  await scene.makeRoom(2);
  assert.deepEqual(scene.servedNames, ['b1']);
  scene.freeSlots.set(A, 1);
  await scene.makeRoom(0);
  assert.deepEqual(scene.servedNames, ['b1', 'a1']);
});

test('refuses creates above maxWaiting', async () => {
  const scene = new QueueScene();
  await scene.join(A, 'one', { max: 2 });
  await scene.join(A, 'two', { max: 2 });
  const late = scene.enter(A, 'three', { waitMs: SECOND_MS, max: 2 });
  await assert.rejects(late, refusedWith('line', { limit: 2, used: 2, scope: 'line' }));
  await assert.rejects(
    scene.enter(B, 'none', { waitMs: SECOND_MS, max: 0 }),
    refusedWith('line', { limit: 0, used: 0 }),
  );
  scene.queue.close(() => new Error('closed'));
});

test('removes a waiting create immediately when its caller disconnects', async () => {
  const scene = new QueueScene();
  const one = new AbortController();
  const left = await scene.join(A, 'one', { signal: one.signal });
  await scene.join(A, 'two', { max: 2 });
  one.abort(new Error('gone'));
  await assert.rejects(left.admission, error => isFault(error, 'capacity'));
  assert.equal(scene.queue.waitingOf(A), 1);
  await scene.join(A, 'three', { max: 2 });
  await scene.makeRoom(2);
  assert.deepEqual(scene.servedNames, ['two', 'three']);
  await assert.rejects(scene.enter(A, 'four', { signal: AbortSignal.abort() }), error => isFault(error, 'capacity'));
});

test('refuses a waiting create after waitMs, and reports its position and how long it waited', async () => {
  const scene = new QueueScene();
  scene.freeSlots.set(A, 0);
  await scene.join(A, 'one');
  const two = await scene.join(A, 'two', { waitMs: 5 * SECOND_MS });
  await scene.join(A, 'three');
  scene.clock.advance(5 * SECOND_MS);
  await assert.rejects(two.admission, error => {
    refusedWith('concurrent', { limit: 10, used: 10, position: 2, waiting: 3 })(error);
    return isFault(error) && Number(error.details?.waitedMs) >= 5 * SECOND_MS;
  });
  assert.equal(scene.queue.waitingOf(A), 2);
  scene.queue.close(() => new Error('closed'));
});

test('admits a waiting create within a second after a slot becomes free, even without a notification', async () => {
  const scene = new QueueScene();
  const { admission } = await scene.join(A, 'one');
  scene.freeHostSlots = 1;
  scene.clock.advance(SECOND_MS);
  assert.equal((await admission).got, 'one');
});

test('admits a create if its caller disconnects during an attempt that succeeds', async () => {
  const clock = new TestClock();
  const queue = new AdmissionQueue<string>(clock);
  const attemptResult = Promise.withResolvers<AttemptResult<string>>();
  const attemptResults = [
    Promise.resolve<AttemptResult<string>>({ refused: refusal('host', 1, 1) }),
    attemptResult.promise,
  ];
  const callerController = new AbortController();
  const admission = queue.enter({
    application: A,
    signal: callerController.signal,
    waitMs: 50 * SECOND_MS,
    attempt: () => attemptResults.shift() ?? assert.fail('asked once too often'),
    maxWaiting: async () => 1,
  });
  await waitUntilIdle();
  queue.noteFreeSlot();
  await waitUntilIdle();
  callerController.abort(new Error('gone'));
  attemptResult.resolve({ got: 'a session that exists by now' });
  const outcome = await admission;
  assert.ok('got' in outcome && outcome.got === 'a session that exists by now');
  assert.equal(queue.size, 0);
});

test('rejects only the create whose attempt fails', async () => {
  const scene = new QueueScene();
  const tries: Array<() => AttemptResult<string>> = [
    () => ({ refused: refusal('host', 1, 1) }),
    () => assert.fail('the database is gone'),
  ];
  const failingCreate = scene.queue.enter({
    application: A,
    signal: new AbortController().signal,
    waitMs: 50 * SECOND_MS,
    attempt: async () => (tries.shift() ?? assert.fail)(),
    maxWaiting: async () => 5,
  });
  failingCreate.catch(() => {});
  await waitUntilIdle();
  const two = scene.enter(A, 'two', { waitMs: 50 * SECOND_MS });
  await assert.rejects(failingCreate, /the database is gone/);
  await scene.makeRoom(1);
  assert.equal((await two).got, 'two');
});

test('rejects all waiting creates when the queue is closed', async () => {
  const scene = new QueueScene();
  const all = [await scene.join(A, 'one'), await scene.join(A, 'two'), await scene.join(B, 'three')];
  scene.queue.close(() => new Error('the service is stopping'));
  for (const { admission: entered } of all) await assert.rejects(entered, /the service is stopping/);
  assert.equal(scene.queue.size, 0);
  await assert.rejects(scene.enter(A, 'four', { waitMs: SECOND_MS }), refusedWith('host', {}));
});
