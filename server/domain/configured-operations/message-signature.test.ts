import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, sign, verify } from 'node:crypto';
import { test } from 'node:test';
import { signatureHeaders } from './message-signature.ts';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const signer = { kid: 'kid-1', sign: (bytes: Uint8Array) => sign(null, bytes, privateKey) };
const AT = new Date('2026-11-24T10:00:00.000Z');
const MESSAGE = { method: 'POST', url: 'https://api.example/orders/a%20b?x=1#part', invocationId: 'i-1' };

test('signs the fixed list of components, with the tag berth-operation', () => {
  const headers = signatureHeaders({ ...MESSAGE, body: Buffer.from('{"a":1}') }, AT, signer);
  const digest = createHash('sha256').update('{"a":1}').digest('base64');
  const parameters =
    '("@method" "@target-uri" "content-digest" "date" "idempotency-key" "berth-invocation-id");created=1795514400;keyid="kid-1";alg="ed25519";tag="berth-operation"';
  const signatureBase = [
    '"@method": POST',
    '"@target-uri": https://api.example/orders/a%20b?x=1',
    `"content-digest": sha-256=:${digest}:`,
    '"date": Tue, 24 Nov 2026 10:00:00 GMT',
    '"idempotency-key": i-1',
    '"berth-invocation-id": i-1',
    `"@signature-params": ${parameters}`,
  ].join('\n');
  assert.equal(headers['signature-input'], `berth=${parameters}`);
  const [, signature = ''] = /^berth=:(.+):$/.exec(headers.signature ?? '') ?? [];
  assert.ok(verify(null, Buffer.from(signatureBase), publicKey, Buffer.from(signature, 'base64')));
});

test('uses the digest of an empty body if there is no body', () => {
  const { 'content-digest': digest } = signatureHeaders(MESSAGE, AT, signer);
  assert.equal(digest, 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:');
});
