import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutSecrets } from './without-secrets.ts';

const SECRET = 'p4ss/wörd "quoted" & more?';

test('removes a secret in every encoding in which a service may echo it', () => {
  const clean = withoutSecrets([SECRET]);
  const echoes = [
    SECRET,
    JSON.stringify({ echoed: SECRET }),
    encodeURIComponent(SECRET),
    Buffer.from(SECRET).toString('hex'),
    ...['', 'u', 'us', 'use', 'user:'].map(before => Buffer.from(`${before}${SECRET}`).toString('base64')),
    ...['', 'a', 'ab'].map(before => Buffer.from(`${before}${SECRET}${before}`).toString('base64url')),
  ];
  for (const echo of echoes) assert.match(clean(`before ${echo} after`), /^before .*\*\*\*.* after$/, echo);
});

test('does not change other strings, and ignores secrets that are too short to be recognised', () => {
  assert.equal(withoutSecrets([SECRET])('password of the day'), 'password of the day');
  assert.equal(withoutSecrets(['abc'])('abc abcabc'), 'abc abcabc');
});
