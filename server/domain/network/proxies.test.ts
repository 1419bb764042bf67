import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFault } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { ProxyPool, StoredProxy } from './pools.ts';
import { parseProxyAddress, type RequestedProxies, type Routes, routesOf } from './proxies.ts';

const session = 'session' as SessionId;
const tokyo: StoredProxy = { name: 'tokyo', scheme: 'http', hostname: '10.0.0.7', port: 3128, trusted: true };
const pools: readonly ProxyPool[] = [{ name: 'tokyo', country: 'JP', timeZone: 'Asia/Tokyo', proxies: [tokyo] }];

const read = (asked: RequestedProxies, given = pools): Routes =>
  routesOf(asked, session, {
    pools: given,
    patternErrors: patterns =>
      patterns.map(pattern => (pattern?.startsWith('(?=') ? 'look-ahead is not supported' : undefined)),
  });

test('proxies: false gives no routes, and proxies: true gives a single route through the pool and the time zone of the pool', () => {
  assert.deepEqual(read(false), { routes: [], timeZone: undefined });
  assert.deepEqual(read(true), { routes: [{ by: tokyo }], timeZone: 'Asia/Tokyo' });
});

test('converts proxy rules into routes with the same order and patterns', () => {
  const { routes, timeZone } = read([
    { type: 'none', domainPattern: 'a' },
    { type: 'external', server: 'http://p.test', username: 'u', password: 'w', domainPattern: 'b' },
    { type: 'browserbase', geolocation: { country: 'JP' } },
  ]);
  const externalProxy = { name: 'proxies.1', scheme: 'http', hostname: 'p.test', port: 80, trusted: false };
  assert.deepEqual(routes, [
    { pattern: 'a', by: 'direct' },
    { pattern: 'b', by: { ...externalProxy, username: 'u', password: 'w' } },
    { by: tokyo },
  ]);
  assert.equal(timeZone, undefined, 'not everything goes through the pool');
});

test('sets no time zone if the rule for a pool has a pattern or follows another rule', () => {
  assert.equal(read([{ type: 'browserbase', domainPattern: 'a' }]).timeZone, undefined);
  assert.equal(read([{ type: 'none', domainPattern: 'a' }, { type: 'browserbase' }]).timeZone, undefined);
  assert.equal(read([{ type: 'browserbase' }]).timeZone, 'Asia/Tokyo');
});

test('refuses a proxy rule for which no pool matches', () => {
  for (const [asked, given] of [
    [true, []],
    [[{ type: 'browserbase', geolocation: { country: 'DE' } }], pools],
  ] as const)
    assert.throws(
      () => read(structuredClone(asked) as RequestedProxies, given),
      error => isFault(error, 'feature_unavailable') && error.details?.field === 'proxies.0',
    );
});

test('reports all invalid patterns in one error', () => {
  assert.throws(
    () =>
      read([
        { type: 'none', domainPattern: '(?=a)' },
        { type: 'none', domainPattern: 'fine' },
        { type: 'browserbase', domainPattern: '(?=b)' },
      ]),
    error =>
      isFault(error, 'invalid_request') &&
      /proxies\.0\.domainPattern/.test(JSON.stringify(error.details)) &&
      /proxies\.2\.domainPattern/.test(JSON.stringify(error.details)) &&
      !/proxies\.1\./.test(JSON.stringify(error.details)),
  );
});

test('refuses user names and passwords that are too long for SOCKS5, but accepts them for HTTP', () => {
  const password = 'ü'.repeat(128);
  assert.throws(
    () => read([{ type: 'external', server: 'socks5://p.test', username: 'u', password }]),
    error => isFault(error, 'invalid_request'),
  );
  read([{ type: 'external', server: 'http://p.test', username: 'u', password }]);
});

test('parses proxy addresses as URLs, with the default port of each scheme', () => {
  for (const [text, scheme, hostname, port] of [
    ['http://p.test', 'http', 'p.test', 80],
    ['https://p.test/', 'https', 'p.test', 443],
    ['SOCKS5://P.Test.', 'socks5', 'p.test', 1080],
    ['http://p.test:80', 'http', 'p.test', 80],
    ['socks5://[::1]:9050', 'socks5', '::1', 9050],
    ['http://2130706433:3128', 'http', '127.0.0.1', 3128],
    ['http://münchen.test:1', 'http', 'xn--mnchen-3ya.test', 1],
  ] as const)
    assert.deepEqual(parseProxyAddress(text), { scheme, hostname, port }, text);
});

test('refuses a string that is not a proxy address, and does not include the string in the message', () => {
  for (const text of [
    '',
    'p.test:3128',
    'ftp://p.test',
    'http://',
    'http://p.test/path',
    'http://p.test?x',
    'http://user:hush@p.test',
    'http://hush@p.test',
    'http://p.test:0',
    'http://p.test:65536',
    'http://p.test:port',
    'http://a b',
    'http://[::1',
  ]) {
    const said = parseProxyAddress(text);
    assert.equal(typeof said, 'string', text);
    assert.doesNotMatch(String(said), /hush/);
  }
});
