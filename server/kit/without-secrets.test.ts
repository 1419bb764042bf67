import assert from 'node:assert/strict';
import { test } from 'node:test';
import { secretRedactor } from './without-secrets.ts';

const SECRET = 'p4ss/wörd "quoted" & more?';

test('removes a secret that is plain or encoded as JSON, for a URL, in hexadecimal or in base64', () => {
  const clean = secretRedactor([SECRET]);
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

test('does not change other strings, and ignores secrets that are too short to be recognized', () => {
  assert.equal(secretRedactor([SECRET])('password of the day'), 'password of the day');
  assert.equal(secretRedactor(['abc'])('abc abcabc'), 'abc abcabc');
});
