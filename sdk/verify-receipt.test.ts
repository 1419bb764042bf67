// Receipts are verified with the key set alone, and any change is detected. The tests use both the cryptography of Node
// and that of browsers.
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { describe, test } from 'node:test';
import { canonicalJson } from './canonical-json.ts';
import { ReceiptInvalid, type VerifyReceiptOptions, verifyReceipt } from './verify-receipt.ts';
import { verifyReceiptInBrowser } from './verify-receipt-in-browser.ts';

const encodePart = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

function newKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const { x = '' } = publicKey.export({ format: 'jwk' });
  const kid = createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url');
  return { privateKey, jwk: { kid, kty: 'OKP', crv: 'Ed25519', x } };
}

const ownKey = newKey();
const otherKey = newKey();
const keys = { keys: [ownKey.jwk] };
const digestOf = (value: unknown): string =>
  `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex')}`;

const INPUT = { url: 'https://example.com/', fields: { b: 1, a: [true, null] } };
const FILE = { mimeType: 'image/png', size: 3, checksum: 'ff' };
const CLAIMS = {
  ...{ iss: 'https://berth.example', aud: 'app', sub: 'invocation:1', jti: '2', iat: 1 },
  berth: {
    ...{ v: 1, operation: { id: 'browser.screenshot', revision: 1, digest: 'sha256:00', effect: 'read' } },
    ...{ inputDigest: digestOf(INPUT), outputDigest: digestOf({ artifact: FILE }), status: 'succeeded', attempts: 1 },
    ...{ createdAt: '2026-11-23T10:00:00.000Z', endedAt: '2026-11-23T10:00:01.000Z' },
    ...{ caller: { kind: 'agent_key', id: '3' }, cost: { meters: {} } },
  },
};

function signReceipt(claims: unknown = CLAIMS, header: object = {}, key: KeyObject = ownKey.privateKey): string {
  const text = `${encodePart({ alg: 'EdDSA', typ: 'berth-receipt+jwt', kid: ownKey.jwk.kid, ...header })}.${encodePart(claims)}`;
  return `${text}.${sign(null, Buffer.from(text), key).toString('base64url')}`;
}

const VERIFIERS = {
  'in Node': async (receipt: string, options: VerifyReceiptOptions) => verifyReceipt(receipt, options),
  'with WebCrypto': verifyReceiptInBrowser,
};

for (const [where, verify] of Object.entries(VERIFIERS))
  describe(`a receipt, verified ${where}`, () => {
    test('a receipt is accepted with its input, output, issuer and audience', async () => {
      const output = { artifact: { ...FILE, downloadUrl: 'https://berth.example/x', downloadUrlExpiresAt: 'soon' } };
      const options = { keys, input: { fields: INPUT.fields, url: INPUT.url }, output };
      const claims = await verify(`${signReceipt()}\n`, { ...options, issuer: CLAIMS.iss, audience: CLAIMS.aud });
      assert.deepEqual(claims, CLAIMS);
    });

    test('a receipt is accepted with an output of several files, and with an output whose downloadUrl does not belong to a file', async () => {
      const linkedFile = { ...FILE, downloadUrl: 'https://berth.example/x', downloadUrlExpiresAt: 'soon' };
      const berth = { ...CLAIMS.berth, outputDigest: digestOf({ artifacts: [FILE, FILE] }) };
      await verify(signReceipt({ ...CLAIMS, berth }), { keys, output: { artifacts: [linkedFile, linkedFile] } });
      const urlOutput = { artifact: { downloadUrl: 'https://shop.example/' } };
      const secondBerth = { ...CLAIMS.berth, outputDigest: digestOf(urlOutput) };
      await verify(signReceipt({ ...CLAIMS, berth: secondBerth }), { keys, output: urlOutput });
    });

    test('a receipt is refused if a character is changed', async () => {
      const receipt = signReceipt();
      for (let at = 0; at < receipt.length; at += 7) {
        const changedReceipt = receipt.slice(0, at) + (receipt[at] === 'A' ? 'B' : 'A') + receipt.slice(at + 1);
        await assert.rejects(verify(changedReceipt, { keys }), ReceiptInvalid, `at ${at}`);
      }
    });

    const refusedCases: Readonly<Record<string, readonly [receipt: string, message: RegExp]>> = {
      'no algorithm': [signReceipt(CLAIMS, { alg: 'none' }), /algorithm is none/],
      'an HMAC algorithm': [signReceipt(CLAIMS, { alg: 'HS256' }), /algorithm is HS256/],
      'a key in its header': [signReceipt(CLAIMS, { jwk: ownKey.jwk }), /header contains jwk/],
      'critical extensions': [signReceipt(CLAIMS, { crit: ['exp'] }), /header contains crit/],
      'another type': [signReceipt(CLAIMS, { typ: 'JWT' }), /type in the header is not/],
      'an unknown key id': [signReceipt(CLAIMS, { kid: otherKey.jwk.kid }, otherKey.privateKey), /not in the key set/],
      'the signature of another key': [signReceipt(CLAIMS, {}, otherKey.privateKey), /signature is not valid/],
      'padding after its signature': [`${signReceipt()}=`, /signature is not valid/],
      'no signature': [signReceipt().split('.').slice(0, 2).join('.'), /not a compact JWS/],
      'incomplete claims': [signReceipt({ iss: 'x' }), /not a receipt/],
    };
    for (const [name, [receipt, message]] of Object.entries(refusedCases))
      test(`verification refuses a receipt with ${name}`, () => assert.rejects(verify(receipt, { keys }), message));

    test('a receipt is refused if the input, output, issuer, audience or key does not match', async () => {
      const assertRefused = (options: object, message: RegExp) =>
        assert.rejects(verify(signReceipt(), { keys, ...options }), message);
      await assertRefused({ input: { ...INPUT, url: 'https://example.org/' } }, /input does not match/);
      await assertRefused({ output: { artifact: { ...FILE, size: 4 } } }, /output does not match/);
      await assertRefused({ issuer: 'https://other.example' }, /issued by/);
      await assertRefused({ audience: 'other' }, /application/);
      await assertRefused({ keys: { keys: [{ ...otherKey.jwk, kid: ownKey.jwk.kid }] } }, /thumbprint/);
    });
  });
