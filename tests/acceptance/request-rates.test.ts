// The limits on reads and writes per credential, with their default values. The allowance of a credential is refilled
// while a test sends requests, so each test sends requests until one is refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import type { HttpResult } from '../harness/http.ts';
import { startServer } from '../harness/server.ts';

const MINUTE_MS = 60_000;
const REQUESTS_AT_ONCE = 20;

const server = await startServer({
  clock: 'test',
  env: {
    BERTH_ENGINE: LIGHT_ENGINE,
    BERTH_SLOTS: '1',
    BERTH_READS_PER_MINUTE: undefined,
    BERTH_WRITES_PER_MINUTE: undefined,
  },
});

const read = () => server.api('GET', '/v1/browsers/contexts');
const write = () =>
  server.api('POST', '/v1/browsers/contexts', { body: { nothing: 1 }, headers: { prefer: 'handling=strict' } });

/** Sends until the first 429. Returns that refusal and the number of requests that were accepted. */
async function sendUntilRefused(
  send: () => Promise<HttpResult<ErrorBody>>,
): Promise<{ readonly accepted: number; readonly refusal: HttpResult<ErrorBody> }> {
  let accepted = 0;
  for (;;) {
    const responses = await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, send));
    const refusal = responses.find(({ status }) => status === 429);
    accepted += responses.filter(({ status }) => status !== 429).length;
    if (refusal) return { accepted, refusal };
  }
}

test('reads above the rate limit are refused with the limit in the error, and are accepted again a minute later', async () => {
  const { accepted, refusal } = await sendUntilRefused(read);
  assert.ok(accepted >= 600, `${accepted} reads`);
  const { code, message, details } = refusal.body;
  assert.equal(code, 'rate_limited');
  assert.match(message, /limit of reads per minute \(limit 600\)/);
  const limitDetails = { limit: 600, used: 600, scope: 'credential', name: 'readsPerMinute', retryAfterSeconds: 1 };
  assert.deepEqual(details, limitDetails);
  assert.equal(refusal.headers['retry-after'], '1');
  assert.equal(refusal.headers['x-ratelimit-limit'], '600');
  assert.equal(refusal.headers['x-ratelimit-remaining'], '0');
  assert.equal(refusal.headers['x-ratelimit-reset'], '1');
  await server.advance(MINUTE_MS);
  assert.ok((await sendUntilRefused(read)).accepted >= 600);
});

test('writes have their own limit, which does not apply to creating and releasing sessions', async () => {
  const { accepted, refusal } = await sendUntilRefused(write);
  assert.ok(accepted >= 120, `${accepted} writes`);
  assert.ok(accepted < 600, `${accepted} writes`);
  assert.equal(refusal.body.details?.name, 'writesPerMinute');
  assert.equal(refusal.headers['x-should-retry'], 'true');
  const { id } = await server.createSession();
  assert.equal((await server.release(id)).status, 'COMPLETED');
});
