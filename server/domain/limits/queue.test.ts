import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import { isFault } from '../../kit/fault.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import { AdmissionQueue, type AttemptResult } from './queue.ts';
import { refusal, refusalFault } from './refusals.ts';

const SECOND = 1000;
const [A, B, C] = ['a', 'b', 'c'] as [ApplicationId, ApplicationId, ApplicationId];

interface Served {
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
  readonly served: string[] = [];
  readonly freeSlots = new Map<ApplicationId, number>();
  freeHostSlots = 0;
  attemptCount = 0;

  async enter(application: ApplicationId, name: string, options: EnterOptions = {}): Promise<Served> {
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

  /** Enters the queue, and returns when the create is waiting. */
  async join(
    application: ApplicationId,
    name: string,
    options: EnterOptions = {},
  ): Promise<{ entered: Promise<Served> }> {
    const before = this.queue.size;
    const entered = this.enter(application, name, { waitMs: 50 * SECOND, ...options });
    entered.catch(() => {});
    await idle();
    assert.equal(this.queue.size, before + 1, `${name} waits`);
    return { entered };
  }

  async makeRoom(places: number): Promise<void> {
    this.freeHostSlots += places;
    this.queue.noteFreeSlot();
    await idle();
  }

  #try(application: ApplicationId, name: string): AttemptResult<string> {
    this.attemptCount++;
    const own = this.freeSlots.get(application) ?? 100;
    if (own === 0) return { refused: refusal('concurrent', 10, 10) };
    if (this.freeHostSlots === 0) return { refused: refusal('host', 10, 10) };
    this.freeSlots.set(application, own - 1);
    this.freeHostSlots--;
    this.served.push(name);
    return { got: name };
  }
}

/** All decisions are made in memory, so they are complete after a few turns of the event loop. */
async function idle(): Promise<void> {
  for (let count = 0; count < 20; count++) await new Promise(resolve => setImmediate(resolve));
}

const CODES = { concurrent: 'concurrency_limit', line: 'concurrency_limit', host: 'capacity' } as const;

const refusedWith = (why: keyof typeof CODES, details: object) => (error: unknown) => {
  assert.ok(isFault(error, CODES[why]), String(error));
  assert.deepEqual({ ...error.details, ...details }, error.details);
  return true;
};

test('admits a create immediately if there is room, and otherwise refuses a create without waitMs immediately', async () => {
  const room = new QueueScene();
  room.freeHostSlots = 1;
  assert.deepEqual(await room.enter(A, 'one', { waitMs: SECOND }), { got: 'one', waitedMs: 0 });
  await assert.rejects(room.enter(A, 'two'), refusedWith('host', { limit: 10, used: 10, scope: 'host' }));
});

test('admits creates in the order of arrival, and reports how long each create waited', async () => {
  const room = new QueueScene();
  const one = await room.join(A, 'one');
  const two = await room.join(A, 'two');
  assert.equal(room.queue.waitingOf(A), 2);
  room.clock.advance(3 * SECOND);
  await room.makeRoom(1);
  assert.deepEqual(room.served, ['one']);
  const { waitedMs } = await one.entered;
  assert.ok(waitedMs >= 3 * SECOND && waitedMs < 20 * SECOND, String(waitedMs));
  await room.makeRoom(1);
  assert.equal((await two.entered).got, 'two');
  assert.equal(room.queue.size, 0);
});

test('admits as many waiting creates as there are free slots, in the order of arrival', async () => {
  const room = new QueueScene();
  for (const name of ['one', 'two', 'three', 'four']) await room.join(A, name);
  await room.makeRoom(3);
  assert.deepEqual(room.served, ['one', 'two', 'three']);
  assert.equal(room.queue.waitingOf(A), 1);
  room.queue.close(() => new Error('closed'));
});

test('a new create does not overtake waiting creates, but waits, or is refused for the same reason as the first waiting create', async () => {
  const room = new QueueScene();
  room.freeSlots.set(A, 0);
  room.freeHostSlots = 5;
  await room.join(A, 'one');
  room.freeSlots.set(A, 1);
  const asked = room.attemptCount;
  await assert.rejects(
    room.enter(A, 'hasty'),
    refusedWith('concurrent', { limit: 10, used: 10, scope: 'application' }),
  );
  assert.equal(room.attemptCount, asked, 'the database was not even asked');
  assert.equal((await room.enter(B, 'other')).got, 'other', 'another application has room of its own');
  void room.enter(A, 'two', { waitMs: SECOND }).catch(() => {});
  await idle();
  assert.deepEqual(room.served, ['other', 'one'], 'the head was served when the newcomer joined');
  room.queue.close(() => new Error('closed'));
});

test('admits creates of applications that wait for a slot in round-robin order, including applications that join later', async () => {
  const room = new QueueScene();
  for (const name of ['a1', 'a2', 'a3']) await room.join(A, name);
  for (const name of ['b1', 'b2']) await room.join(B, name);
  await assert.rejects(room.enter(C, 'hasty'), refusedWith('host', {}));
  await room.join(C, 'c1');
  for (let count = 0; count < 6; count++) await room.makeRoom(1);
  assert.deepEqual(room.served, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
});

test('admits creates of other applications while one application is at its own limit', async () => {
  const room = new QueueScene();
  room.freeSlots.set(A, 0);
  await room.join(A, 'a1');
  await room.join(B, 'b1');
  await room.makeRoom(2);
  assert.deepEqual(room.served, ['b1']);
  room.freeSlots.set(A, 1);
  await room.makeRoom(0);
  assert.deepEqual(room.served, ['b1', 'a1']);
});

test('refuses creates above maxWaiting', async () => {
  const room = new QueueScene();
  await room.join(A, 'one', { max: 2 });
  await room.join(A, 'two', { max: 2 });
  const late = room.enter(A, 'three', { waitMs: SECOND, max: 2 });
  await assert.rejects(late, refusedWith('line', { limit: 2, used: 2, scope: 'line' }));
  await assert.rejects(room.enter(B, 'none', { waitMs: SECOND, max: 0 }), refusedWith('line', { limit: 0, used: 0 }));
  room.queue.close(() => new Error('closed'));
});

test('removes a waiting create immediately when its caller disconnects', async () => {
  const room = new QueueScene();
  const one = new AbortController();
  const left = await room.join(A, 'one', { signal: one.signal });
  await room.join(A, 'two', { max: 2 });
  one.abort(new Error('gone'));
  await assert.rejects(left.entered, error => isFault(error, 'capacity'));
  assert.equal(room.queue.waitingOf(A), 1);
  await room.join(A, 'three', { max: 2 });
  await room.makeRoom(2);
  assert.deepEqual(room.served, ['two', 'three']);
  await assert.rejects(room.enter(A, 'four', { signal: AbortSignal.abort() }), error => isFault(error, 'capacity'));
});

test('refuses a waiting create after waitMs, and reports its position and how long it waited', async () => {
  const room = new QueueScene();
  room.freeSlots.set(A, 0);
  await room.join(A, 'one');
  const two = await room.join(A, 'two', { waitMs: 5 * SECOND });
  await room.join(A, 'three');
  room.clock.advance(5 * SECOND);
  await assert.rejects(two.entered, error => {
    refusedWith('concurrent', { limit: 10, used: 10, position: 2, waiting: 3 })(error);
    return isFault(error) && Number(error.details?.waitedMs) >= 5 * SECOND;
  });
  assert.equal(room.queue.waitingOf(A), 2);
  room.queue.close(() => new Error('closed'));
});

test('admits a waiting create within a second after a slot becomes free, even without a notification', async () => {
  const room = new QueueScene();
  const { entered } = await room.join(A, 'one');
  room.freeHostSlots = 1;
  room.clock.advance(SECOND);
  assert.equal((await entered).got, 'one');
});

test('admits a create if its caller disconnects during an attempt that succeeds', async () => {
  const clock = new TestClock();
  const queue = new AdmissionQueue<string>(clock);
  const answer = Promise.withResolvers<AttemptResult<string>>();
  const tries = [Promise.resolve<AttemptResult<string>>({ refused: refusal('host', 1, 1) }), answer.promise];
  const caller = new AbortController();
  const entered = queue.enter({
    application: A,
    signal: caller.signal,
    waitMs: 50 * SECOND,
    attempt: () => tries.shift() ?? assert.fail('asked once too often'),
    maxWaiting: async () => 1,
  });
  await idle();
  queue.noteFreeSlot();
  await idle();
  caller.abort(new Error('gone'));
  answer.resolve({ got: 'a session that exists by now' });
  const outcome = await entered;
  assert.ok('got' in outcome && outcome.got === 'a session that exists by now');
  assert.equal(queue.size, 0);
});

test('rejects only the create whose attempt fails', async () => {
  const room = new QueueScene();
  const tries: Array<() => AttemptResult<string>> = [
    () => ({ refused: refusal('host', 1, 1) }),
    () => assert.fail('the database is gone'),
  ];
  const broken = room.queue.enter({
    application: A,
    signal: new AbortController().signal,
    waitMs: 50 * SECOND,
    attempt: async () => (tries.shift() ?? assert.fail)(),
    maxWaiting: async () => 5,
  });
  broken.catch(() => {});
  await idle();
  const two = room.enter(A, 'two', { waitMs: 50 * SECOND });
  await assert.rejects(broken, /the database is gone/);
  await room.makeRoom(1);
  assert.equal((await two).got, 'two');
});

test('rejects all waiting creates when the queue is closed', async () => {
  const room = new QueueScene();
  const all = [await room.join(A, 'one'), await room.join(A, 'two'), await room.join(B, 'three')];
  room.queue.close(() => new Error('the service is stopping'));
  for (const { entered } of all) await assert.rejects(entered, /the service is stopping/);
  assert.equal(room.queue.size, 0);
  await assert.rejects(room.enter(A, 'four', { waitMs: SECOND }), refusedWith('host', {}));
});
