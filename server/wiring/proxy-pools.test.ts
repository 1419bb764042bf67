// The operator's proxy file: valid values are read, and each mistake is reported with its position but without secret
// values.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { ProxyPool } from '../domain/network/pools.ts';
import { readProxyPools } from './proxy-pools.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-pools-'));
after(() => rmSync(folder, { recursive: true }));

function writeAndReadPools(content: unknown): readonly ProxyPool[] {
  const file = join(folder, 'pools.json');
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return readProxyPools(file);
}

const PROXY = { server: 'http://10.0.0.7:3128', username: 'hush-user', password: 'hush-word' };
const POOL = { name: 'us-east', country: 'US', state: 'NY', city: 'New York', timeZone: 'America/New_York' };

test('reads the pools of a file, marks each proxy as trusted, and gives each proxy the name of its pool', () => {
  const [pool, other, ...rest] = writeAndReadPools({
    pools: [
      { ...POOL, proxies: [PROXY, { server: 'socks5://[fd00::7]' }] },
      { name: 'de', country: 'DE', proxies: [{ server: 'https://proxy.example' }] },
    ],
  });
  assert.deepEqual(rest, []);
  assert.deepEqual(pool, {
    ...POOL,
    proxies: [
      {
        name: 'us-east',
        scheme: 'http',
        hostname: '10.0.0.7',
        port: 3128,
        username: 'hush-user',
        password: 'hush-word',
        trusted: true,
      },
      { name: 'us-east', scheme: 'socks5', hostname: 'fd00::7', port: 1080, trusted: true },
    ],
  });
  assert.deepEqual([other?.name, other?.proxies[0].port], ['de', 443]);
  assert.deepEqual(writeAndReadPools({ pools: [] }), []);
  assert.equal(
    writeAndReadPools(contentWith({}, { ...PROXY, password: 'hush'.repeat(64) })).length,
    1,
    'a longer password for HTTP',
  );
});

const contentWith = (change: object, proxy: object = PROXY): unknown => ({
  pools: [{ ...POOL, proxies: [proxy], ...change }],
});

const WRONG_CONTENTS: ReadonlyArray<readonly [content: unknown, says: RegExp]> = [
  ['{', /a JSON file that can be read/],
  ['', /a JSON file that can be read/],
  [[], /"pools"/],
  [{ pools: {} }, /at \/pools\b/],
  [{ pools: [], more: 1 }, /"pools"/],
  [contentWith({ name: 'US East' }), /at \/pools\/0\/name/],
  [contentWith({ country: 'us' }), /at \/pools\/0\/country/],
  [contentWith({ proxies: [] }), /at \/pools\/0\/proxies/],
  [contentWith({ proxies: undefined }), /at \/pools\/0/],
  [contentWith({ timeZone: 'Mars/Olympus' }), /an IANA time zone \(at \/pools\/0\/timeZone\)/],
  [contentWith({ timezone: 'Asia/Tokyo' }), /at \/pools\/0/],
  [contentWith({}, { ...PROXY, server: 'ftp://10.0.0.7' }), /at \/pools\/0\/proxies\/0\/server/],
  [contentWith({}, { ...PROXY, server: 'http://hush-user:hush-word@10.0.0.7' }), /at \/pools\/0\/proxies\/0\/server/],
  [contentWith({}, { ...PROXY, password: 7 }), /at \/pools\/0\/proxies\/0\/password/],
  [
    contentWith({}, { ...PROXY, server: 'socks5://10.0.0.7', password: 'hush'.repeat(64) }),
    /255 bytes.*at \/pools\/0\/proxies\/0\b/,
  ],
  [
    contentWith({}, { ...PROXY, server: 'socks5://10.0.0.7', username: 'hüsh'.repeat(52) }),
    /255 bytes.*at \/pools\/0\/proxies\/0\b/,
  ],
  [contentWith({}, { ...PROXY, extra: 'hush' }), /at \/pools\/0\/proxies\/0/],
];

test('reports the position of an error in the file without showing values from the file', () => {
  for (const [content, expectedError] of WRONG_CONTENTS)
    assert.throws(
      () => writeAndReadPools(content),
      error => {
        const said = String(error);
        assert.match(said, /BERTH_PROXY_POOLS/);
        assert.match(said, expectedError);
        assert.doesNotMatch(said, /hush/);
        return true;
      },
      JSON.stringify(content),
    );
});

test('reports the path of a missing file', () => {
  assert.throws(() => readProxyPools(join(folder, 'none.json')), /BERTH_PROXY_POOLS .*none\.json.*can be read/);
});
