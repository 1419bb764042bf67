// Tests how a host shares its tokens among requests that arrive at the same moment. The tests of the store cover the
// shared bucket itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../../tests/harness/hand-clock.ts';
import { isFault } from '../../kit/fault.ts';
import type { KeyId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { FleetRates, type FleetRatesParts } from './fleet-rates.ts';

const credential = { kind: 'agentKey', keyId: 'key' as KeyId } as const;
/** The limit of writes per minute. A share is a twentieth of it: 6 writes. */
const WRITES_PER_MINUTE = 120;
const REFUSAL_WAIT_MS = 500;

/**
 * A host, and a full bucket that is not refilled. `asked` contains the number of tokens in each request from the host.
 */
function hostWithFullBucket() {
  const requestedTokens: number[] = [];
  let left = WRITES_PER_MINUTE;
  const rows: FleetRatesParts['rows'] = {
    take: async (_, tokens) => {
      requestedTokens.push(tokens);
      const granted = Math.min(tokens, left);
      left -= granted;
      return { granted, waitMs: granted > 0 ? 0 : REFUSAL_WAIT_MS };
    },
    sweep: async () => {},
  };
  const perMinute = { reads: 600, writes: WRITES_PER_MINUTE };
  const rates = new FleetRates({ perMinute, rows, clock: new ManualClock(), log: silentLog, isAlone: () => false });
  return { rates, asked: requestedTokens };
}

/** Returns the results of this number of concurrent writes. */
const writeConcurrently = (rates: FleetRates, writes: number) =>
  Promise.allSettled(Array.from({ length: writes }, () => rates.take(credential, true)));

test('admits ten concurrent requests, although the host first takes only six tokens from the shared bucket', async () => {
  const { rates, asked: requestedTokens } = hostWithFullBucket();
  const results = await writeConcurrently(rates, 10);
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 10);
  assert.equal(requestedTokens[0], 6);
});

test('admits concurrent requests up to the limit, refuses the others, and queries the database only a few times', async () => {
  const { rates, asked: requestedTokens } = hostWithFullBucket();
  const results = await writeConcurrently(rates, WRITES_PER_MINUTE + 10);
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, WRITES_PER_MINUTE);
  const refusals = results.flatMap(one => (one.status === 'rejected' ? [one.reason] : []));
  assert.equal(refusals.length, 10);
  for (const refusal of refusals) {
    assert.ok(isFault(refusal, 'rate_limited'));
    assert.equal(refusal.details?.limit, WRITES_PER_MINUTE);
    assert.equal(refusal.details?.retryAfterSeconds, 1);
  }
  assert.ok(requestedTokens.length <= 4, String(requestedTokens));
});

test('a host counts concurrent requests in memory if the database does not respond', async () => {
  const take = (): Promise<never> => Promise.reject(new Error('no database'));
  const rates = new FleetRates({
    ...{ perMinute: { reads: 600, writes: WRITES_PER_MINUTE }, rows: { take, sweep: async () => {} } },
    ...{ clock: new ManualClock(), log: silentLog, isAlone: () => false },
  });
  const results = await writeConcurrently(rates, WRITES_PER_MINUTE + 1);
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, WRITES_PER_MINUTE);
});
