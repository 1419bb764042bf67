import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import type { AttemptRows } from '../../engines/store/rows/attempts.ts';
import { isFault } from '../../kit/fault.ts';
import { silentLog } from '../../kit/log.ts';
import { SharedTallies, type SharedTally, takeAll } from './shared-tally.ts';

const LIMIT = { name: 'codes', what: 'wrong codes', max: 2, withinMs: 60_000, scope: 'address' } as const;
const REFUSAL = { waitMs: 40_000 };

const tallyOver = (count: AttemptRows['count'], { clock = new ManualClock(), isAlone = false } = {}): SharedTally => {
  const rows: AttemptRows = { count, takeBack: async () => {}, sweep: async () => {} };
  return new SharedTallies({ clock, log: silentLog, rows, isAlone: () => isAlone }).of(LIMIT);
};

const isRefusalFor = (waitSeconds: number) => (error: unknown) =>
  isFault(error, 'rate_limited') && error.details?.retryAfterSeconds === waitSeconds;

test('counts attempts only in memory if the host is alone or the database does not respond', async () => {
  const away = async () => assert.fail('the database is away');
  for (const tally of [tallyOver(away, { isAlone: true }), tallyOver(away)]) {
    for (let attempt = 0; attempt < 2; attempt += 1) await tally.take('a');
    await assert.rejects(tally.take('a'), isRefusalFor(60));
  }
});

test('repeats a refusal by the database for one second without a new query, and does not count the refused attempts locally', async () => {
  const clock = new ManualClock();
  let queryCount = 0;
  const responses = [REFUSAL, REFUSAL, REFUSAL, { at: '1' }, { at: '2' }];
  const tally = tallyOver(async () => responses[queryCount++] ?? assert.fail(), { clock });
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await assert.rejects(tally.take('a'), isRefusalFor(40));
    await assert.rejects(tally.take('a'), isRefusalFor(40));
    await clock.advance(1_000);
  }
  assert.equal(queryCount, 3);
  for (let attempt = 0; attempt < 2; attempt += 1) await tally.take('a');
  assert.equal(queryCount, 5);
});

test('an attempt that one tally refuses is not counted by another tally', async () => {
  const tallies = [1, 2].map(() => tallyOver(async () => ({ at: '1' }), { isAlone: true }));
  const [account, address] = tallies;
  assert.ok(account && address);
  for (let attempt = 0; attempt < 2; attempt += 1) await address.take('x');
  for (let attempt = 0; attempt < 5; attempt += 1) await assert.rejects(takeAll([account, 'a'], [address, 'x']));
  const takeBack = await takeAll([account, 'a'], [address, 'y']);
  await account.take('a');
  await assert.rejects(account.take('a'));
  await takeBack();
  await account.take('a');
});
