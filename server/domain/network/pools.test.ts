import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionId } from '../../kit/ids.ts';
import type { StoredProxy } from './pools.ts';
import { type Place, type ProxyPool, poolFor, proxyFor } from './pools.ts';

const storedProxy = (hostname: string): StoredProxy => ({
  name: 'p',
  scheme: 'http',
  hostname,
  port: 3128,
  trusted: true,
});

const pool = (name: string, place: Place): ProxyPool => ({ name, ...place, proxies: [storedProxy(name)] });

const POOLS: readonly ProxyPool[] = [
  pool('berlin', { country: 'DE', city: 'Berlin' }),
  pool('us', { country: 'US' }),
  pool('ny', { country: 'US', state: 'NY', city: 'New York' }),
  pool('la', { country: 'US', state: 'CA', city: 'Los Angeles' }),
];

const poolNameFor = (place: Place | undefined, pools = POOLS): string | undefined => poolFor(pools, place)?.name;

test('if no place is given, selects the first pool in the US, or the first pool if there is no pool in the US', () => {
  assert.equal(poolNameFor(undefined), 'us');
  assert.equal(poolNameFor(undefined, POOLS.slice(0, 1)), 'berlin');
  assert.equal(poolNameFor(undefined, []), undefined);
});

test('selects only a pool that specifies every requested part of the place', () => {
  assert.equal(poolNameFor({ country: 'DE' }), 'berlin');
  assert.equal(poolNameFor({ country: 'US', state: 'NY' }), 'ny');
  assert.equal(poolNameFor({ country: 'US', city: 'Los Angeles' }), 'la');
  assert.equal(poolNameFor({ country: 'US', state: 'CA', city: 'New York' }), undefined);
  assert.equal(poolNameFor({ country: 'DE', state: 'BE' }), undefined, 'a pool without a state does not match');
  assert.equal(poolNameFor({ country: 'FR' }), undefined, 'no pool of another country');
});

test('compares places without regard to case and separators', () => {
  for (const city of ['new york', 'NEW_YORK', 'New-York', 'new  york'])
    assert.equal(poolNameFor({ country: 'us', state: 'ny', city }), 'ny', city);
});

test('always uses the same proxy of a pool for a session, and distributes sessions over all proxies', () => {
  const proxies: ProxyPool['proxies'] = [storedProxy('a'), storedProxy('b'), storedProxy('c')];
  const poolOfThree: ProxyPool = { ...pool('three', { country: 'US' }), proxies };
  const used = new Set<string>();
  for (let number = 0; number < 100; number++) {
    const session = `session-${number}` as SessionId;
    assert.equal(proxyFor(poolOfThree, session), proxyFor(poolOfThree, session));
    used.add(proxyFor(poolOfThree, session).hostname);
  }
  assert.deepEqual([...used].sort(), ['a', 'b', 'c']);
});
