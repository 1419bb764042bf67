import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { ChangeFollower } from '../change-follower.ts';
import type { HumanCaller } from '../identity/caller.ts';
import { Inbox, type InboxParts } from './inbox.ts';

test('a waiting request reads the counts every 15 seconds while nothing changes', async () => {
  const clock = new ManualClock();
  const readTimesMs: number[] = [];
  const changeFollower = await ChangeFollower.open('inbox_changed', {
    store: { listen: async () => ({ close: () => {} }) },
    clock,
  });
  const inbox = new Inbox({
    store: {
      inbox: {
        counts: async () => {
          readTimesMs.push(clock.monotonicMs());
          return [];
        },
        applicationsOf: async () => [],
      },
    } as unknown as InboxParts['store'], // Contains only the members that `read` uses.
    changeFollower,
    clock,
  });
  const caller = { accountId: 'ada' } as unknown as HumanCaller;
  const viewPromise = inbox.read(caller, { wait: 55 }, new AbortController().signal);
  await new Promise(done => setImmediate(done));
  await clock.advance(55_000, 1_000);
  assert.deepEqual((await viewPromise).applications, []);
  assert.deepEqual(readTimesMs, [0, 0, 15_000, 30_000, 45_000, 55_000]);
  await changeFollower.close();
});
