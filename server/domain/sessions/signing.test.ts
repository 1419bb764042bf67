import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyId, SessionId } from '../../kit/ids.ts';
import { Secret } from '../../kit/secret.ts';
import { Signing } from './signing.ts';

const one = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10' as SessionId;
const two = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d11' as SessionId;
const agentKeyId = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d12' as KeyId;
const otherKeyId = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d13' as KeyId;
const signing = new Signing(new Secret('s'.repeat(32)), 'https://browsers.example/base');

test('accepts a signing key only for its own session, and returns the id of its agent key', () => {
  const key = signing.keyOf(one, agentKeyId);
  assert.equal(signing.agentKeyIdOf(one, key), agentKeyId);
  for (const wrongKey of ['', `${key}x`, `x${key}`, key.slice(0, -1), signing.keyOf(two, agentKeyId)])
    assert.equal(signing.agentKeyIdOf(one, wrongKey), undefined, wrongKey);
});

test('refuses a signing key in which the id of the agent key was replaced', () => {
  const [mine, theirs] = [agentKeyId, otherKeyId].map(id => id.replaceAll('-', '')) as [string, string];
  assert.equal(signing.agentKeyIdOf(one, signing.keyOf(one, agentKeyId).replace(mine, theirs)), undefined);
});

test('derives different signing keys from different secrets', () => {
  const otherSigning = new Signing(new Secret('t'.repeat(32)), 'https://browsers.example');
  assert.equal(otherSigning.agentKeyIdOf(one, signing.keyOf(one, agentKeyId)), undefined);
});

test('builds the connect address from the public URL', () => {
  const { connectUrl, signingKey } = signing.fieldsOf(one, agentKeyId);
  assert.equal(connectUrl, `wss://browsers.example/base/v1/browsers/sessions/${one}/connect?signingKey=${signingKey}`);
});
