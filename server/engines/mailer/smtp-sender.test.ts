import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needsTls } from './smtp-sender.ts';

for (const [url, expected] of [
  ['smtp://user:password@mail.example', true],
  ['smtp://user:password@mail.example:587', true],
  ['smtp://user:password@127.evil.example', true],
  ['smtp://mail.example:25', false],
  ['smtp://user:password@localhost:1025', false],
  ['smtp://user:password@127.0.0.1:1025', false],
  ['smtp://user:password@[::1]:1025', false],
] as const)
  test(`${url} ${expected ? 'needs' : 'does not need'} TLS`, () => assert.equal(needsTls(url), expected));
