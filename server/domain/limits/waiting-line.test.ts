import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import { isFault } from '../../kit/fault.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import { concurrentRefusal, hostRefusal, type Refusal, Refused } from './refusals.ts';
import { type Tried, WaitingLine } from './waiting-line.ts';

const SECOND = 1000;
const [A, B, C] = ['a', 'b', 'c'] as [ApplicationId, ApplicationId, ApplicationId];

interface Served {
  readonly got: string;
  readonly waitedMs: number;
}

interface More {
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
  readonly most?: number;
}

/** What the database would say: so many places on the host, so many for each application. */
class Room {
  readonly clock = new TestClock();
  readonly line = new WaitingLine<string>(this.clock);
  readonly served: string[] = [];
  readonly free = new Map<ApplicationId, number>();
  hostFree = 0;
  asked = 0;

  come(application: ApplicationId, name: string, more: More = {}): Promise<Served> {
    const { waitMs, signal = new AbortController().signal, most = 20 } = more;
    const wish = {
      application,
      signal,
      attempt: async () => this.#try(application, name),
      maxWaiting: async () => most,
    };
    return this.line.admit(waitMs === undefined ? wish : { ...wish, waitMs });
  }

  /** Somebody comes and is seen standing in line. */
  async join(application: ApplicationId, name: string, more: More = {}): Promise<{ stands: Promise<Served> }> {
    const before = this.line.size;
    const stands = this.come(application, name, { waitMs: 50 * SECOND, ...more });
    stands.catch(() => {});
    await idle();
    assert.equal(this.line.size, before + 1, `${name} stands in line`);
    return { stands };
  }

  async makeRoom(places: number): Promise<void> {
    this.hostFree += places;
    this.line.freed();
    await idle();
  }

  #try(application: ApplicationId, name: string): Tried<string> {
    this.asked++;
    const own = this.free.get(application) ?? 100;
    if (own === 0) return { refusal: concurrentRefusal(10, 10) };
    if (this.hostFree === 0) return { refusal: hostRefusal(10, 10) };
    this.free.set(application, own - 1);
    this.hostFree--;
    this.served.push(name);
    return { got: name };
  }
}

/** Everything here is decided in memory, so it is decided after some turns of the loop. */
async function idle(): Promise<void> {
  for (let count = 0; count < 20; count++) await new Promise(resolve => setImmediate(resolve));
}

const refusedWith = (why: Refusal['why'], details: object) => (error: unknown) => {
  assert.ok(error instanceof Refused, String(error));
  assert.equal(error.why, why);
  assert.deepEqual({ ...error.details, ...details }, error.details);
  return true;
};

test('where there is room nobody waits; where there is none, only who wishes to', async () => {
  const room = new Room();
  room.hostFree = 1;
  assert.deepEqual(await room.come(A, 'one', { waitMs: SECOND }), { got: 'one', waitedMs: 0 });
  await assert.rejects(room.come(A, 'two'), refusedWith('host', { limit: 10, used: 10, scope: 'host' }));
});

test('first come, first served, and each hears how long it stood', async () => {
  const room = new Room();
  const one = await room.join(A, 'one');
  const two = await room.join(A, 'two');
  assert.equal(room.line.waitingOf(A), 2);
  room.clock.advance(3 * SECOND);
  await room.makeRoom(1);
  assert.deepEqual(room.served, ['one']);
  const { waitedMs } = await one.stands;
  assert.ok(waitedMs >= 3 * SECOND && waitedMs < 20 * SECOND, String(waitedMs));
  await room.makeRoom(1);
  assert.equal((await two.stands).got, 'two');
  assert.equal(room.line.size, 0);
});

test('several places at once go to as many, in order', async () => {
  const room = new Room();
  for (const name of ['one', 'two', 'three', 'four']) await room.join(A, name);
  await room.makeRoom(3);
  assert.deepEqual(room.served, ['one', 'two', 'three']);
  assert.equal(room.line.waitingOf(A), 1);
  room.line.close(() => new Error('over'));
});

test('nobody overtakes: a newcomer joins behind, or is refused as the head was', async () => {
  const room = new Room();
  room.free.set(A, 0);
  room.hostFree = 5;
  await room.join(A, 'one');
  room.free.set(A, 1);
  const asked = room.asked;
  await assert.rejects(room.come(A, 'hasty'), refusedWith('concurrent', { limit: 10, used: 10, scope: 'application' }));
  assert.equal(room.asked, asked, 'the database was not even asked');
  assert.equal((await room.come(B, 'other')).got, 'other', 'another application has room of its own');
  void room.come(A, 'two', { waitMs: SECOND }).catch(() => {});
  await idle();
  assert.deepEqual(room.served, ['other', 'one'], 'the head was served when the newcomer joined');
  room.line.close(() => new Error('over'));
});

test('between applications that wait for the host it goes by turns, and newcomers of others wait as well', async () => {
  const room = new Room();
  for (const name of ['a1', 'a2', 'a3']) await room.join(A, name);
  for (const name of ['b1', 'b2']) await room.join(B, name);
  await assert.rejects(room.come(C, 'hasty'), refusedWith('host', {}));
  await room.join(C, 'c1');
  for (let count = 0; count < 6; count++) await room.makeRoom(1);
  assert.deepEqual(room.served, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
});

test('an application at its own limit does not hold the others up', async () => {
  const room = new Room();
  room.free.set(A, 0);
  await room.join(A, 'a1');
  await room.join(B, 'b1');
  await room.makeRoom(2);
  assert.deepEqual(room.served, ['b1']);
  room.free.set(A, 1);
  await room.makeRoom(0);
  assert.deepEqual(room.served, ['b1', 'a1']);
});

test('the line is bounded', async () => {
  const room = new Room();
  await room.join(A, 'one', { most: 2 });
  await room.join(A, 'two', { most: 2 });
  const late = room.come(A, 'three', { waitMs: SECOND, most: 2 });
  await assert.rejects(late, refusedWith('line', { limit: 2, used: 2, scope: 'line' }));
  await assert.rejects(room.come(B, 'none', { waitMs: SECOND, most: 0 }), refusedWith('line', { limit: 0, used: 0 }));
  room.line.close(() => new Error('over'));
});

test('who hangs up leaves at once and frees its place', async () => {
  const room = new Room();
  const one = new AbortController();
  const left = await room.join(A, 'one', { signal: one.signal });
  await room.join(A, 'two', { most: 2 });
  one.abort(new Error('gone'));
  await assert.rejects(left.stands, error => isFault(error, 'capacity'));
  assert.equal(room.line.waitingOf(A), 1);
  await room.join(A, 'three', { most: 2 });
  await room.makeRoom(2);
  assert.deepEqual(room.served, ['two', 'three']);
  await assert.rejects(room.come(A, 'four', { signal: AbortSignal.abort() }), error => isFault(error, 'capacity'));
});

test('whose seconds are over gets the ordinary refusal, with where it stood', async () => {
  const room = new Room();
  room.free.set(A, 0);
  await room.join(A, 'one');
  const two = await room.join(A, 'two', { waitMs: 5 * SECOND });
  await room.join(A, 'three');
  room.clock.advance(5 * SECOND);
  await assert.rejects(two.stands, error => {
    refusedWith('concurrent', { limit: 10, used: 10, position: 2, waiting: 3 })(error);
    return isFault(error) && Number(error.details?.waitedMs) >= 5 * SECOND;
  });
  assert.equal(room.line.waitingOf(A), 2);
  room.line.close(() => new Error('over'));
});

test('room that nobody told of is found within a second', async () => {
  const room = new Room();
  const { stands } = await room.join(A, 'one');
  room.hostFree = 1;
  room.clock.advance(SECOND);
  assert.equal((await stands).got, 'one');
});

test('who wants to leave while it is being served is served', async () => {
  const clock = new TestClock();
  const line = new WaitingLine<string>(clock);
  const answer = Promise.withResolvers<Tried<string>>();
  const tries = [Promise.resolve<Tried<string>>({ refusal: hostRefusal(1, 1) }), answer.promise];
  const caller = new AbortController();
  const stands = line.admit({
    application: A,
    signal: caller.signal,
    waitMs: 50 * SECOND,
    attempt: () => tries.shift() ?? assert.fail('asked once too often'),
    maxWaiting: async () => 1,
  });
  await idle();
  line.freed();
  await idle();
  caller.abort(new Error('gone'));
  answer.resolve({ got: 'a session that exists by now' });
  assert.equal((await stands).got, 'a session that exists by now');
  assert.equal(line.size, 0);
});

test('an attempt that fails ends the wait of that one only', async () => {
  const room = new Room();
  const tries: Array<() => Tried<string>> = [
    () => ({ refusal: hostRefusal(1, 1) }),
    () => assert.fail('the database is gone'),
  ];
  const broken = room.line.admit({
    application: A,
    signal: new AbortController().signal,
    waitMs: 50 * SECOND,
    attempt: async () => (tries.shift() ?? assert.fail)(),
    maxWaiting: async () => 5,
  });
  broken.catch(() => {});
  await idle();
  const two = room.come(A, 'two', { waitMs: 50 * SECOND });
  await assert.rejects(broken, /the database is gone/);
  await room.makeRoom(1);
  assert.equal((await two).got, 'two');
});

test('when the service stops everybody is sent away', async () => {
  const room = new Room();
  const all = [await room.join(A, 'one'), await room.join(A, 'two'), await room.join(B, 'three')];
  room.line.close(() => new Error('the service stops'));
  for (const { stands } of all) await assert.rejects(stands, /the service stops/);
  assert.equal(room.line.size, 0);
  await assert.rejects(room.come(A, 'four', { waitMs: SECOND }), refusedWith('host', {}));
});
