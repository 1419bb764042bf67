import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFault } from '../../kit/fault.ts';
import type { AccountId, KeyId, TokenId } from '../../kit/ids.ts';
import { RequestRates } from './request-rates.ts';

const key = (id: string) => ({ kind: 'agentKey', keyId: id as KeyId }) as const;

function createRates(reads: number, writes: number) {
  const clock = { nowMs: 0, monotonicMs: () => clock.nowMs };
  return { rates: new RequestRates({ reads, writes }, clock), clock };
}

const refusedWith = (details: object) => (error: unknown) => {
  assert.ok(isFault(error, 'rate_limited'));
  assert.deepEqual(error.details, details);
  return true;
};

test('lets each credential use the limit of a full minute at once, and then restricts the credential to the refill rate', () => {
  const { rates, clock } = createRates(3, 30);
  for (let sent = 0; sent < 3; sent++) rates.take(key('a'), false);
  const details = { limit: 3, used: 3, scope: 'credential', name: 'readsPerMinute' };
  assert.throws(() => rates.take(key('a'), false), refusedWith({ ...details, retryAfterSeconds: 20 }));
  clock.nowMs += 19_000;
  assert.throws(() => rates.take(key('a'), false), refusedWith({ ...details, retryAfterSeconds: 1 }));
  clock.nowMs += 1_000;
  rates.take(key('a'), false);
  assert.throws(() => rates.take(key('a'), false));
  clock.nowMs += 3_600_000;
  for (let sent = 0; sent < 3; sent++) rates.take(key('a'), false);
  assert.throws(() => rates.take(key('a'), false));
});

test('counts reads and writes of each credential separately', () => {
  const { rates } = createRates(1, 1);
  const via = (id: string) => ({ kind: 'personal_token', id: id as TokenId }) as const;
  const tokenCaller = (id: string) => ({ kind: 'account', accountId: 'one' as AccountId, via: via(id) }) as const;
  rates.take(key('a'), false);
  rates.take(key('a'), true);
  rates.take(key('b'), false);
  rates.take(tokenCaller('t'), false);
  rates.take(tokenCaller('u'), false);
  assert.throws(() => rates.take(key('a'), true), /limit of writes per minute \(limit 1\)/);
  assert.throws(() => rates.take(tokenCaller('t'), false), /limit of reads per minute \(limit 1\)/);
});

test('tracks only the 10,000 most recently used credentials', () => {
  const { rates } = createRates(1, 1);
  for (let n = 0; n <= 10_000; n++) rates.take(key(`${n}`), false);
  assert.throws(() => rates.take(key('1'), false));
  assert.throws(() => rates.take(key('10000'), false));
  rates.take(key('0'), false);
});
