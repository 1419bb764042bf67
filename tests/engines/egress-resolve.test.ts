// Name resolution with a name server that the test itself runs.
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createResolver, type Resolve, type ResolveTimeouts } from '../../server/engines/egress/resolve.ts';
import { systemClock } from '../../server/kit/clock.ts';
import { type Answer, type Answerer, openNameServer, PATIENT_TIMEOUTS } from './egress-dns.ts';

interface TestResolver {
  readonly resolve: Resolve;
  readonly queryCount: (name: string) => number;
}

async function openTestResolver(
  t: TestContext,
  answer: Answerer,
  hosts: Readonly<Record<string, string>> = {},
  nowMs = () => 0,
  timeouts: Partial<ResolveTimeouts> = {},
): Promise<TestResolver> {
  const server = await openNameServer(answer);
  t.after(() => server[Symbol.asyncDispose]());
  const clock = { ...systemClock, monotonicMs: nowMs };
  const servers = [server.address];
  const resolve = createResolver({
    hosts: new Map(Object.entries(hosts)),
    ...{ clock, servers, timeouts: { ...PATIENT_TIMEOUTS, ...timeouts } },
  });
  return { resolve, queryCount: name => server.queryCount(name) };
}

test('the resolver prefers static names, and resolves localhost to loopback without a query', async t => {
  const { resolve, queryCount } = await openTestResolver(t, () => ({ addresses: ['9.9.9.9'] }), {
    'a.test': '127.0.0.1',
    'six.test': 'fd00::9',
    'b.localhost': '10.0.0.1',
  });
  assert.deepEqual(await resolve('a.test'), ['127.0.0.1']);
  assert.deepEqual(await resolve('six.test'), ['fd00::9']);
  assert.deepEqual(await resolve('b.localhost'), ['10.0.0.1']);
  for (const name of ['localhost', 'x.localhost', 'x.y.localhost']) {
    assert.deepEqual(await resolve(name), ['127.0.0.1'], name);
    assert.equal(queryCount(name), 0);
  }
  assert.deepEqual(await resolve('notlocalhost'), ['9.9.9.9']);
});

test('the resolver returns all addresses of both families', async t => {
  const { resolve } = await openTestResolver(t, ({ type }) => ({
    addresses: type === 'A' ? ['1.2.3.4', '10.0.0.1'] : ['2600::1', 'fd00::9'],
  }));
  assert.deepEqual(await resolve('mixed.test'), ['1.2.3.4', '10.0.0.1', '2600::1', 'fd00::9']);
});

test('the resolver returns the addresses of one family if the other family has no addresses', async t => {
  const { resolve } = await openTestResolver(t, ({ name, type }) => ({
    addresses: name.startsWith('six') === (type === 'AAAA') ? [type === 'A' ? '1.2.3.4' : '2600::1'] : [],
  }));
  assert.deepEqual(await resolve('four.test'), ['1.2.3.4']);
  assert.deepEqual(await resolve('six.test'), ['2600::1']);
});

test('the resolver does not wait for an address family whose query gets no response', async t => {
  const lateAnswer = Promise.withResolvers<Answer>();
  const { resolve } = await openTestResolver(
    t,
    ({ type }) => (type === 'A' ? { addresses: ['1.2.3.4'] } : lateAnswer.promise),
    {},
    () => 0,
    { otherFamilyMs: 50 },
  );
  assert.deepEqual(await resolve('half.test'), ['1.2.3.4']);
  // The AAAA query is answered only now, after the resolver has stopped waiting for it.
  lateAnswer.resolve({ addresses: [] });
});

test('the resolver rejects a name without addresses as name_not_resolved', async t => {
  const { resolve } = await openTestResolver(t, () => ({ addresses: [] }));
  await assert.rejects(resolve('none.test'), { name: 'Failed', kind: 'name_not_resolved' });
});

test('the resolver caches responses for their TTL, but for at most one minute, and not at all if the TTL is zero', async t => {
  let nowMs = 0;
  const ttls: Readonly<Record<string, number>> = { 'zero.test': 0, 'ten.test': 10, 'day.test': 86_400 };
  const { resolve, queryCount } = await openTestResolver(
    t,
    ({ name }) => ({ addresses: ['1.2.3.4'], ttlSeconds: ttls[name] ?? 0 }),
    {},
    () => nowMs,
  );
  /** Resolves every name at this time, and returns how often each has been queried so far. */
  const resolveAllAt = async (seconds: number): Promise<number[]> => {
    nowMs = seconds * 1000;
    for (const name of Object.keys(ttls)) await resolve(name);
    return Object.keys(ttls).map(queryCount);
  };
  assert.deepEqual(await resolveAllAt(0), [1, 1, 1]);
  assert.deepEqual(await resolveAllAt(9), [2, 1, 1]);
  assert.deepEqual(await resolveAllAt(11), [3, 2, 1]);
  assert.deepEqual(await resolveAllAt(59), [4, 3, 1]);
  assert.deepEqual(await resolveAllAt(61), [5, 3, 2]);
});

test('the resolver sends one query for concurrent requests for the same name', async t => {
  const { resolve, queryCount } = await openTestResolver(t, () => ({ addresses: ['1.2.3.4'] }));
  await Promise.all(Array.from({ length: 20 }, () => resolve('same.test')));
  assert.equal(queryCount('same.test'), 1);
});

test('the resolver queries again after the TTL and uses the new addresses', async t => {
  let nowMs = 0;
  const answer: Answerer = ({ time, type }) => ({
    addresses: type === 'AAAA' ? [] : [time === 1 ? '1.2.3.4' : '10.9.9.9'],
    ttlSeconds: 10,
  });
  const { resolve } = await openTestResolver(t, answer, {}, () => nowMs);
  assert.deepEqual(await resolve('turning.test'), ['1.2.3.4']);
  nowMs = 9_999;
  assert.deepEqual(await resolve('turning.test'), ['1.2.3.4']);
  nowMs = 10_000;
  assert.deepEqual(await resolve('turning.test'), ['10.9.9.9']);
});
