import assert from 'node:assert/strict';
import { test } from 'node:test';
import { valueIssues } from './credential-values.ts';

test('a key must consist of characters that can be sent in a header, and other secrets need not', () => {
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
  // These are encoded before they are sent.
  assert.deepEqual(valueIssues('basic', { username: 'Jörg', password: 'schlüssel' }), []);
  assert.deepEqual(valueIssues('oauth_client', { clientId: 'Jörg', clientSecret: 'schlüssel' }), []);
});
