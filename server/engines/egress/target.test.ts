// Hosts are parsed as in the WHATWG URL standard, and ambiguous ones are rejected.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAbsoluteTarget, parseAuthority } from './target.ts';

const LOOPBACK_SPELLINGS = [
  '127.0.0.1',
  '127.0.0.1.',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '0177.0.0.1',
  '017700000001',
  '0x7F.0X0.0.01',
];
const ENCODED_LOOPBACK_SPELLINGS = [
  '127%2e0%2e0%2e1',
  '%31%32%37.0.0.1',
  '%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1',
  '127%E3%80%820%E3%80%820%E3%80%821',
  '127.0.0.1%E3%80%82',
  '[::ffff:127.0.0.1]',
  '[::FFFF:7F00:1]',
  '[0:0:0:0:0:ffff:127.0.0.1]',
];

test('parses all spellings of an address as the same address', () => {
  for (const host of [...LOOPBACK_SPELLINGS, ...ENCODED_LOOPBACK_SPELLINGS]) {
    assert.equal(parseAuthority(`${host}:80`)?.address?.text, '127.0.0.1', host);
    assert.equal(parseAbsoluteTarget(`http://${host}/`)?.target.address?.text, '127.0.0.1', host);
  }
});

test('normalizes names to lower case and punycode, without a trailing dot', () => {
  const names = [
    ['A.Test', 'a.test'],
    ['a.test.', 'a.test'],
    ['b%C3%BCcher.test', 'xn--bcher-kva.test'],
    ['%E2%93%9B%E2%93%9E%E2%93%92%E2%93%90%E2%93%9B%E2%93%97%E2%93%9E%E2%93%A2%E2%93%A3', 'localhost'],
    ['a%2etest', 'a.test'],
    ['a_b.test', 'a_b.test'],
  ] as const;
  for (const [host, name] of names) {
    assert.deepEqual(parseAuthority(`${host}:443`), { hostname: name, port: 443 });
    assert.deepEqual(parseAbsoluteTarget(`http://${host}/`)?.target, { hostname: name, port: 80 });
  }
});

test('rejects hosts that the URL standard rejects or does not parse as a host', () => {
  const hosts = [
    '',
    '.',
    '..',
    'a..test',
    '.a.test',
    'a.test..',
    '256.0.0.1',
    '1.2.3.4.5',
    '0x100000000',
    '1.2.3.08',
    '[::1',
    '::1',
    '[::1].',
    '[fe80::1%25eth0]',
    '[fe80::1%eth0]',
    '[::ffff:127.0.0.1.]',
    'a b',
    'a%00b',
    'a%2fb',
    'a%40b',
    'a<b',
    'user@a.test',
    'user:pass@a.test',
    'a.test/x',
    'a.test\\x',
    'a.test?x',
    'a.test#x',
    'a\tb',
    'bücher.test',
    '１２７.0.0.1',
    'a\x00b',
    'a\x7fb',
    `${'a.'.repeat(127)}test`,
  ];
  for (const host of hosts) {
    assert.equal(parseAuthority(`${host}:80`), undefined, `CONNECT ${host}`);
    if (!/[/?#]/.test(host)) assert.equal(parseAbsoluteTarget(`http://${host}/`), undefined, `GET ${host}`);
  }
});

test('rejects a CONNECT without a valid port', () => {
  for (const authority of [
    'a.test',
    'a.test:',
    'a.test:0',
    'a.test:65536',
    'a.test:123456',
    'a.test:-1',
    'a.test:8o',
    'a.test:80:80',
    ':80',
    'http://a.test:80',
  ])
    assert.equal(parseAuthority(authority), undefined, authority);
  assert.equal(parseAuthority('a.test:65535')?.port, 65_535);
  assert.equal(parseAuthority('[2600::1]:443')?.hostname, '2600::1');
});

test('rejects a plain request unless its URL has the http scheme and a host', () => {
  for (const text of [
    '/',
    '*',
    '',
    'a.test/',
    'https://a.test/',
    'ws://a.test/',
    'file:///etc/passwd',
    'http:/a.test/',
    'http:a.test',
    'http:///a.test/',
    'http://',
    'http://:80/',
    'http://a.test:0/',
    'http://a.test:99999/',
  ])
    assert.equal(parseAbsoluteTarget(text), undefined, text);
});

test('keeps the path unchanged, and returns the parsed host', () => {
  const read = (text: string): readonly [string | undefined, string | undefined] => {
    const parsedTarget = parseAbsoluteTarget(text);
    return [parsedTarget?.host, parsedTarget?.path];
  };
  assert.deepEqual(read('http://A.test'), ['a.test', '/']);
  assert.deepEqual(read('http://a.test:80/x'), ['a.test', '/x']);
  assert.deepEqual(read('HTTP://a.test:8080/x/../y?z=%7c|#frag'), ['a.test:8080', '/x/../y?z=%7c|']);
  assert.deepEqual(read('http://a.test?q'), ['a.test', '/?q']);
  assert.deepEqual(read('http://a.test#f'), ['a.test', '/']);
  assert.deepEqual(read('http://[2600::1]:81//x'), ['[2600::1]:81', '//x']);
  assert.deepEqual(read('http://a.test/@b.test/'), ['a.test', '/@b.test/']);
});
