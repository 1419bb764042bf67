import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '../../kit/secret.ts';
import { requestDigest } from './request-digest.ts';

const secret = new Secret('s'.repeat(32));
const digestOf = (request: unknown): string => requestDigest(secret, request).toString('hex');

test('computes the same digest for identical requests, regardless of the order of their fields', () => {
  assert.equal(digestOf({ a: 1, b: { c: [1, 2], d: null } }), digestOf({ b: { d: null, c: [1, 2] }, a: 1 }));
  assert.equal(digestOf({ a: 1, b: undefined }), digestOf({ a: 1 }));
});

test('computes different digests for different requests', () => {
  const requests = [{}, [], '', '{}', null, 0, { a: 1 }, { a: '1' }, { a: [1, 2] }, { a: [2, 1] }, { 'a":1,"b': 1 }];
  assert.equal(new Set(requests.map(digestOf)).size, requests.length);
});

test('computes a different digest with a different secret', () => {
  assert.notEqual(requestDigest(new Secret('t'.repeat(32)), {}).toString('hex'), digestOf({}));
});
