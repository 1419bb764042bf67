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

function read(content: unknown): readonly ProxyPool[] {
  const file = join(folder, 'pools.json');
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return readProxyPools(file);
}

const PROXY = { server: 'http://10.0.0.7:3128', username: 'hush-user', password: 'hush-word' };
const POOL = { name: 'us-east', country: 'US', state: 'NY', city: 'New York', timeZone: 'America/New_York' };

test('reads the pools of a file, marks each proxy as trusted, and gives each proxy the name of its pool', () => {
  const [pool, other, ...rest] = read({
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
  assert.deepEqual(read({ pools: [] }), []);
  assert.equal(read(pools({}, { ...PROXY, password: 'hush'.repeat(64) })).length, 1, 'a longer password for HTTP');
});

const pools = (change: object, proxy: object = PROXY): unknown => ({
  pools: [{ ...POOL, proxies: [proxy], ...change }],
});

const WRONG: ReadonlyArray<readonly [content: unknown, says: RegExp]> = [
  ['{', /a JSON file that can be read/],
  ['', /a JSON file that can be read/],
  [[], /"pools"/],
  [{ pools: {} }, /at \/pools\b/],
  [{ pools: [], more: 1 }, /"pools"/],
  [pools({ name: 'US East' }), /at \/pools\/0\/name/],
  [pools({ country: 'us' }), /at \/pools\/0\/country/],
  [pools({ proxies: [] }), /at \/pools\/0\/proxies/],
  [pools({ proxies: undefined }), /at \/pools\/0/],
  [pools({ timeZone: 'Mars/Olympus' }), /an IANA time zone \(at \/pools\/0\/timeZone\)/],
  [pools({ timezone: 'Asia/Tokyo' }), /at \/pools\/0/],
  [pools({}, { ...PROXY, server: 'ftp://10.0.0.7' }), /at \/pools\/0\/proxies\/0\/server/],
  [pools({}, { ...PROXY, server: 'http://hush-user:hush-word@10.0.0.7' }), /at \/pools\/0\/proxies\/0\/server/],
  [pools({}, { ...PROXY, password: 7 }), /at \/pools\/0\/proxies\/0\/password/],
  [
    pools({}, { ...PROXY, server: 'socks5://10.0.0.7', password: 'hush'.repeat(64) }),
    /255 bytes.*at \/pools\/0\/proxies\/0\b/,
  ],
  [
    pools({}, { ...PROXY, server: 'socks5://10.0.0.7', username: 'hüsh'.repeat(52) }),
    /255 bytes.*at \/pools\/0\/proxies\/0\b/,
  ],
  [pools({}, { ...PROXY, extra: 'hush' }), /at \/pools\/0\/proxies\/0/],
];

test('reports the position of an error in the file without showing values from the file', () => {
  for (const [content, expectedError] of WRONG)
    assert.throws(
      () => read(content),
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
