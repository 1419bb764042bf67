import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import { ENDED_WAIT_MAX_MS, EndedRecordings } from './ended-recordings.ts';

class Host {
  readonly clock = new TestClock();
  readonly releasedSessions: string[] = [];
  readonly full = new Set<string>();
  isQuiet = false;
  readonly endedRecordings = new EndedRecordings({
    clock: this.clock,
    isQuiet: () => this.isQuiet,
    mayWait: session => !this.full.has(session),
  });

  end(...sessions: readonly string[]): void {
    for (const session of sessions)
      void this.endedRecordings.whenDue(session).then(() => this.releasedSessions.push(session));
  }

  async pass(ms: number): Promise<readonly string[]> {
    await turn();
    this.clock.advance(ms);
    for (let turns = 0; turns < 5; turns++) await turn();
    return this.releasedSessions;
  }
}

test('a recording of an ended session is due for encoding immediately if a processor is free or too many bytes are waiting', async () => {
  const host = new Host();
  host.full.add('b');
  host.end('a', 'b');
  assert.deepEqual(await host.pass(0), ['b']);
  host.isQuiet = true;
  host.end('c');
  assert.deepEqual(await host.pass(0), ['b', 'c']);
  await host.endedRecordings.close();
});

test('recordings become due for encoding in order, one session at a time, and only while a processor is free', async () => {
  const host = new Host();
  host.end('a', 'a', 'b', 'c');
  assert.deepEqual(await host.pass(10_000), []);
  host.isQuiet = true;
  assert.deepEqual(await host.pass(500), ['a', 'a']);
  assert.deepEqual(await host.pass(500), ['a', 'a', 'b']);
  host.isQuiet = false;
  assert.deepEqual(await host.pass(10_000), ['a', 'a', 'b']);
  await host.endedRecordings.close();
});

test('a requested recording is due for encoding even if no processor is free, but other recordings are not', async () => {
  const host = new Host();
  host.end('a', 'b');
  host.endedRecordings.releaseSession('b');
  assert.deepEqual(await host.pass(500), ['b']);
  await host.endedRecordings.close();
});

test('a recording is due for encoding after the maximum waiting time, or if it is the oldest of more than 500 waiting recordings', async () => {
  const host = new Host();
  host.end('a');
  assert.deepEqual(await host.pass(ENDED_WAIT_MAX_MS), ['a']);
  host.end(...Array.from({ length: 501 }, (_, index) => `s${index}`));
  assert.deepEqual(await host.pass(0), ['a', 's0']);
  assert.equal(host.endedRecordings.size, 500);
  await host.endedRecordings.close();
});

test('all waiting recordings are due for encoding when the queue is closed', async () => {
  const host = new Host();
  host.end('a', 'b');
  await host.pass(0);
  await host.endedRecordings.close();
  assert.deepEqual(await host.pass(0), ['a', 'b']);
  host.end('c');
  assert.deepEqual(await host.pass(0), ['a', 'b', 'c']);
});
