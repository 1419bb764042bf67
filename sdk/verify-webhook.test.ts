// Webhook messages are verified with the public key, and any change is detected.
import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { test } from 'node:test';
import { verifyWebhook, WebhookInvalid } from './verify-webhook.ts';

const NOW = new Date('2026-11-23T10:00:00.000Z');
const AT = NOW.getTime() / 1000;
const BODY = '{"type":"session.ended","timestamp":"2026-11-23T09:59:59.000Z","data":{"sessionId":"é"}}';

function newKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const { x = '' } = publicKey.export({ format: 'jwk' });
  return { privateKey, publicKey: `whpk_${Buffer.from(x, 'base64url').toString('base64')}` };
}

const ownKey = newKey();
const otherKey = newKey();

const signatureOf = (id: string, at: number, body: string, key: KeyObject = ownKey.privateKey): string =>
  `v1a,${sign(null, Buffer.from(`${id}.${at}.${body}`), key).toString('base64')}`;

const headersOf = (at = AT, body = BODY, key = ownKey.privateKey) => ({
  'webhook-id': 'msg-1',
  'webhook-timestamp': `${at}`,
  'webhook-signature': signatureOf('msg-1', at, body, key),
});

test('verifyWebhook returns the message for a text or binary body, with fetch or Node headers', () => {
  const expectedMessage = {
    ...{ id: 'msg-1', type: 'session.ended', timestamp: '2026-11-23T09:59:59.000Z' },
    data: { sessionId: 'é' },
  };
  const headers = headersOf();
  assert.deepEqual(verifyWebhook(BODY, headers, ownKey.publicKey, { now: NOW }), expectedMessage);
  assert.deepEqual(
    verifyWebhook(Buffer.from(BODY), new Headers(headers), ownKey.publicKey, { now: NOW }),
    expectedMessage,
  );
  const upperCaseHeaders = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
  );
  assert.deepEqual(
    verifyWebhook(BODY, upperCaseHeaders, [otherKey.publicKey, ownKey.publicKey], { now: NOW }),
    expectedMessage,
  );
});

test('verifyWebhook accepts a message if any of its signatures is valid, for example after a key rotation', () => {
  const headers = headersOf();
  headers['webhook-signature'] =
    `v1,abc ${signatureOf('msg-1', AT, BODY, otherKey.privateKey)} ${headers['webhook-signature']}`;
  assert.equal(verifyWebhook(BODY, headers, ownKey.publicKey, { now: NOW }).id, 'msg-1');
});

test('verifyWebhook refuses a message with an invalid signature, timestamp or body, or without a required header', () => {
  const assertRefused = (
    body: string,
    headers: Readonly<Record<string, string | undefined>>,
    message: RegExp,
    key = ownKey.publicKey,
  ) =>
    assert.throws(
      () => verifyWebhook(body, headers, key, { now: NOW }),
      (error: unknown) => error instanceof WebhookInvalid && message.test(error.message),
    );
  assertRefused(BODY.replace('ended', 'began'), headersOf(), /no signature is valid/);
  assertRefused(BODY, { ...headersOf(), 'webhook-id': 'msg-2' }, /no signature is valid/);
  assertRefused(BODY, { ...headersOf(), 'webhook-timestamp': `${AT + 1}` }, /no signature is valid/);
  assertRefused(BODY, headersOf(AT, BODY, otherKey.privateKey), /no signature is valid/);
  assertRefused(BODY, { ...headersOf(), 'webhook-signature': 'v1a,' }, /no signature is valid/);
  assertRefused(BODY, headersOf(AT - 301), /too old/);
  assertRefused(BODY, headersOf(AT + 301), /too old/);
  assertRefused(BODY, { ...headersOf(), 'webhook-timestamp': 'now' }, /not a number/);
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
    assertRefused(BODY, { ...headersOf(), [name]: undefined }, /missing/);
  assertRefused('[]', headersOf(AT, '[]'), /not a webhook message/);
  assertRefused(BODY, headersOf(), /public key/, 'whsec_AAAA');
});
