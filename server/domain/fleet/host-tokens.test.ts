import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import { type HostId, newId } from '../../kit/ids.ts';
import { Secret } from '../../kit/secret.ts';
import { HostTokens } from './host-tokens.ts';

const SECRET = new Secret('s'.repeat(32));
const [A, B, C] = [newId<HostId>(new Date()), newId<HostId>(new Date()), newId<HostId>(new Date())];
const REQUEST = { method: 'GET', path: '/v1/browsers/sessions?limit=1' };
const CLIENT = { ip: '10.0.0.9', address: '10.0.0.8', port: 4321 };

const tokensOf = (host: HostId, aheadMs = 0, secret = SECRET): HostTokens =>
  new HostTokens(secret, host, { ...systemClock, now: () => new Date(Date.now() + aheadMs) });

const assertRefused = (read: () => unknown, why: RegExp): void =>
  assert.throws(read, error => isFault(error, 'permission_denied') && why.test(error.message));

test('a token identifies the host that passed a request on and the caller that sent the request', () => {
  assert.deepEqual(tokensOf(B).read(tokensOf(A).make(B, REQUEST, CLIENT), REQUEST), { host: A, ...CLIENT });
});

test('refuses a token on another host, for another method or path, after its expiry, and on the host that issued it', () => {
  const token = tokensOf(A).make(B, REQUEST, CLIENT);
  assertRefused(() => tokensOf(C).read(token, REQUEST), /for another host/);
  assertRefused(() => tokensOf(B).read(token, { ...REQUEST, method: 'POST' }), /for another request/);
  assertRefused(() => tokensOf(B).read(token, { ...REQUEST, path: '/v1/browsers/sessions' }), /for another request/);
  assertRefused(() => tokensOf(B, 15_001).read(token, REQUEST), /has expired/);
  assertRefused(() => tokensOf(A).read(tokensOf(A).make(A, REQUEST, CLIENT), REQUEST), /in a loop/);
});

test('refuses a token that was signed with another secret, altered or forged', () => {
  const token = tokensOf(A).make(B, REQUEST, CLIENT);
  const [payload = '', signature = ''] = token.split('.');
  const changedPayload = Buffer.from(
    Buffer.from(payload, 'base64url').toString().replace('10.0.0.9', '10.0.0.1'),
  ).toString('base64url');
  const foreignToken = tokensOf(A, 0, new Secret('t'.repeat(32))).make(B, REQUEST, CLIENT);
  for (const badToken of [
    foreignToken,
    `${changedPayload}.${signature}`,
    `${payload}.`,
    `${token}.x`,
    '',
    '.',
    'x'.repeat(100_000),
  ])
    assertRefused(() => tokensOf(B).read(badToken, REQUEST), /was not issued by this fleet/);
});
