// Receipts are verified with the key set alone, and any change is detected. The tests use both the cryptography of Node
// and that of browsers.
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { describe, test } from 'node:test';
import { canonicalJson } from './canonical-json.ts';
import { ReceiptInvalid, type VerifyReceiptOptions, verifyReceipt } from './verify-receipt.ts';
import { verifyReceiptInBrowser } from './verify-receipt-in-browser.ts';

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

function newKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const { x = '' } = publicKey.export({ format: 'jwk' });
  const kid = createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url');
  return { privateKey, jwk: { kid, kty: 'OKP', crv: 'Ed25519', x } };
}

const own = newKey();
const other = newKey();
const keys = { keys: [own.jwk] };
const digest = (value: unknown): string => `sha256:${createHash('sha256').update(canonicalJson(value)).digest('hex')}`;

const INPUT = { url: 'https://example.com/', fields: { b: 1, a: [true, null] } };
const FILE = { mimeType: 'image/png', size: 3, checksum: 'ff' };
const CLAIMS = {
  ...{ iss: 'https://berth.example', aud: 'app', sub: 'invocation:1', jti: '2', iat: 1 },
  berth: {
    ...{ v: 1, operation: { id: 'browser.screenshot', revision: 1, digest: 'sha256:00', effect: 'read' } },
    ...{ inputDigest: digest(INPUT), outputDigest: digest({ artifact: FILE }), status: 'succeeded', attempts: 1 },
    ...{ createdAt: '2026-11-23T10:00:00.000Z', endedAt: '2026-11-23T10:00:01.000Z' },
    ...{ caller: { kind: 'agent_key', id: '3' }, cost: { meters: {} } },
  },
};

function signed(claims: unknown = CLAIMS, header: object = {}, key: KeyObject = own.privateKey): string {
  const text = `${part({ alg: 'EdDSA', typ: 'berth-receipt+jwt', kid: own.jwk.kid, ...header })}.${part(claims)}`;
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
      const claims = await verify(`${signed()}\n`, { ...options, issuer: CLAIMS.iss, audience: CLAIMS.aud });
      assert.deepEqual(claims, CLAIMS);
    });

    test('a receipt is accepted with an output of several files, and with an output whose downloadUrl does not belong to a file', async () => {
      const linked = { ...FILE, downloadUrl: 'https://berth.example/x', downloadUrlExpiresAt: 'soon' };
      const berth = { ...CLAIMS.berth, outputDigest: digest({ artifacts: [FILE, FILE] }) };
      await verify(signed({ ...CLAIMS, berth }), { keys, output: { artifacts: [linked, linked] } });
      const own = { artifact: { downloadUrl: 'https://shop.example/' } };
      const answered = { ...CLAIMS.berth, outputDigest: digest(own) };
      await verify(signed({ ...CLAIMS, berth: answered }), { keys, output: own });
    });

    test('a receipt is refused if a character is changed', async () => {
      const receipt = signed();
      for (let at = 0; at < receipt.length; at += 7) {
        const changed = receipt.slice(0, at) + (receipt[at] === 'A' ? 'B' : 'A') + receipt.slice(at + 1);
        await assert.rejects(verify(changed, { keys }), ReceiptInvalid, `at ${at}`);
      }
    });

    const cases: Readonly<Record<string, readonly [receipt: string, message: RegExp]>> = {
      'no algorithm': [signed(CLAIMS, { alg: 'none' }), /algorithm is none/],
      'an HMAC algorithm': [signed(CLAIMS, { alg: 'HS256' }), /algorithm is HS256/],
      'a key in its header': [signed(CLAIMS, { jwk: own.jwk }), /header contains jwk/],
      'critical extensions': [signed(CLAIMS, { crit: ['exp'] }), /header contains crit/],
      'another type': [signed(CLAIMS, { typ: 'JWT' }), /type in the header is not/],
      'an unknown key id': [signed(CLAIMS, { kid: other.jwk.kid }, other.privateKey), /not in the key set/],
      'the signature of another key': [signed(CLAIMS, {}, other.privateKey), /signature is not valid/],
      'padding after its signature': [`${signed()}=`, /signature is not valid/],
      'no signature': [signed().split('.').slice(0, 2).join('.'), /not a compact JWS/],
      'claims that are not a receipt': [signed({ iss: 'x' }), /not a receipt/],
    };
    for (const [name, [receipt, message]] of Object.entries(cases))
      test(`verification refuses a receipt with ${name}`, () => assert.rejects(verify(receipt, { keys }), message));

    test('a receipt is refused if the input, output, issuer, audience or key does not match', async () => {
      const refused = (options: object, message: RegExp) =>
        assert.rejects(verify(signed(), { keys, ...options }), message);
      await refused({ input: { ...INPUT, url: 'https://example.org/' } }, /input does not match/);
      await refused({ output: { artifact: { ...FILE, size: 4 } } }, /output does not match/);
      await refused({ issuer: 'https://other.example' }, /issued by/);
      await refused({ audience: 'other' }, /application/);
      await refused({ keys: { keys: [{ ...other.jwk, kid: own.jwk.kid }] } }, /thumbprint/);
    });
  });
