import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionId } from '../../kit/ids.ts';
import { Secret } from '../../kit/secret.ts';
import { Signing } from './signing.ts';

const one = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10' as SessionId;
const two = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d11' as SessionId;
const signing = new Signing(new Secret('s'.repeat(32)), 'https://browsers.example/base');

test('a key opens its own session and no other', () => {
  assert.ok(signing.verify(one, signing.keyOf(one)));
  assert.ok(!signing.verify(two, signing.keyOf(one)));
  assert.ok(!signing.verify(one, ''));
  assert.ok(!signing.verify(one, `${signing.keyOf(one)}x`));
});

test('another secret gives another key', () => {
  const other = new Signing(new Secret('t'.repeat(32)), 'https://browsers.example');
  assert.ok(!other.verify(one, signing.keyOf(one)));
});

test('the connect address is a WebSocket below the public URL', () => {
  const { connectUrl, signingKey } = signing.fieldsOf(one);
  assert.equal(connectUrl, `wss://browsers.example/base/v1/browsers/sessions/${one}/connect?signingKey=${signingKey}`);
});
