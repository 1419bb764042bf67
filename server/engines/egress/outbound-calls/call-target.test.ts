// How the URLs of calls are parsed, and which URLs are refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallError } from './call-failure.ts';
import { parseCallTarget } from './call-target.ts';

const MAX = 100;

const hostOrErrorOf = (url: string): string => {
  try {
    return parseCallTarget(url, MAX).host;
  } catch (error) {
    return error instanceof CallError ? error.errorKind : assert.fail(`${error}`);
  }
};

test('normalizes internationalized names, trailing dots and default ports', () => {
  assert.deepEqual(parseCallTarget('https://BÜCHER.example.:443/a%20b?c=d#e', MAX), {
    ...{ hostname: 'xn--bcher-kva.example', port: 443, isEncrypted: true },
    ...{ host: 'xn--bcher-kva.example', path: '/a%20b?c=d' },
  });
  assert.equal(parseCallTarget('https://[2001:DB8::1]:8443', MAX).host, '[2001:db8::1]:8443');
  assert.equal(parseCallTarget('http://a.test:443/', MAX).host, 'a.test:443');
});

test('converts decimal, octal and hexadecimal hosts to IP addresses', () => {
  for (const host of ['2130706433', '0x7f.1', '0177.0.0.1', '127.1'])
    assert.equal(parseCallTarget(`https://${host}/`, MAX).address?.text, '127.0.0.1', host);
});

test('refuses anything that is not a plain https or http URL', () => {
  assert.equal(hostOrErrorOf('https://a@b.test/'), 'user_info');
  assert.equal(hostOrErrorOf('https:///@b.test/'), 'user_info');
  assert.equal(hostOrErrorOf('https://b.test/@a'), 'b.test');
  assert.equal(hostOrErrorOf('gopher://b.test/'), 'not_https');
  for (const url of ['b.test', 'https://b.test/\t', 'https://b.test:99999/', `https://b.test/${'a'.repeat(MAX)}`])
    assert.equal(hostOrErrorOf(url), 'bad_url', url);
});
