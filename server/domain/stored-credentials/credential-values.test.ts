import assert from 'node:assert/strict';
import { test } from 'node:test';
import { valueIssues } from './credential-values.ts';

test('an api_key must consist of characters that can be sent in a header, but other secrets need not', () => {
  assert.deepEqual(valueIssues('api_key', { key: 'Token sk_live-~!"0123' }), []);
  for (const key of [
    'schlüssel-1234',
    'key-of-\u2028shop',
    'key\u0085of-shop',
    'key\tof-shop',
    'key-of-shop\u{1f511}',
  ]) {
    const issues = valueIssues('api_key', { key });
    assert.deepEqual(
      issues.map(({ path }) => path),
      ['value.key'],
      JSON.stringify(key),
    );
    assert.match(issues[0]?.message ?? '', /cannot be sent in a header/);
  }
  // Values of these types are encoded before they are sent, so they may contain other characters.
  assert.deepEqual(valueIssues('basic', { username: 'Jörg', password: 'schlüssel' }), []);
  assert.deepEqual(valueIssues('oauth_client', { clientId: 'Jörg', clientSecret: 'schlüssel' }), []);
});

test('a file must be base64 of at most 64 KiB', () => {
  const issuesOf = (base64: string) => valueIssues('file', { name: 'a.p12', base64 });
  assert.deepEqual(issuesOf(Buffer.alloc(65_536).toString('base64')), []);
  for (const base64 of [Buffer.alloc(65_537).toString('base64'), 'AAAAA', 'AAAA===='])
    assert.deepEqual(
      issuesOf(base64).map(({ path }) => path),
      ['value.base64'],
      base64.slice(0, 9),
    );
});
