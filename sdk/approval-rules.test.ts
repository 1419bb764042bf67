// The approval in a receipt can be verified without the service. It states who signed which digest, for which host
// name, and when. The tests use both the cryptography of Node and that of browsers.
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { describe, test } from 'node:test';
import { canonicalJson } from './canonical-json.ts';
import { ReceiptInvalid, type VerifyReceiptOptions, verifyReceipt } from './verify-receipt.ts';
import { verifyReceiptInBrowser } from './verify-receipt-in-browser.ts';

const encodePart = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const sha256 = (bytes: string | Uint8Array): Buffer => createHash('sha256').update(bytes).digest();
const digestOf = (value: unknown): string => `sha256:${sha256(canonicalJson(value)).toString('hex')}`;

const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const { x = '' } = publicKey.export({ format: 'jwk' });
const kid = sha256(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).toString('base64url');
const keys = { keys: [{ kid, kty: 'OKP', crv: 'Ed25519', x }] };

const ISSUER = 'https://berth.example';
const CONTENT = { typ: 'berth.action.v1', input: { orderId: 'A-1' } };
const PASSKEY_GENERATORS: Readonly<Record<string, () => { publicKey: KeyObject; privateKey: KeyObject }>> = {
  'P-256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  Ed25519: () => generateKeyPairSync('ed25519'),
  RSA: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  'ML-DSA': () => generateKeyPairSync('ml-dsa-44'),
};

interface Change {
  readonly digest?: string;
  readonly origin?: string;
  readonly rpId?: string;
  readonly signedRpId?: string;
  readonly flags?: number;
  readonly type?: string;
  readonly at?: string;
  readonly method?: string;
  readonly isSignatureFlipped?: boolean;
}

function createReceipt(change: Change = {}, kind = 'P-256'): string {
  const passkey = PASSKEY_GENERATORS[kind]?.() ?? assert.fail(kind);
  const { digest = digestOf(CONTENT), origin = ISSUER, rpId = 'berth.example', flags = 5, method = 'passkey' } = change;
  const challenge = Buffer.from(digest.slice(7), 'hex').toString('base64url');
  const clientData = Buffer.from(JSON.stringify({ type: change.type ?? 'webauthn.get', challenge, origin }));
  const authenticatorData = Buffer.concat([sha256(change.signedRpId ?? rpId), Buffer.from([flags, 0, 0, 0, 1])]);
  const signedBytes = Buffer.concat([authenticatorData, sha256(clientData)]);
  const signature = sign(kind === 'P-256' || kind === 'RSA' ? 'sha256' : null, signedBytes, passkey.privateKey);
  if (change.isSignatureFlipped) signature[signature.length - 1] = (signature.at(-1) ?? 0) ^ 1;
  const { kty, crv, x, y, n, e, alg, pub } = Object(passkey.publicKey.export({ format: 'jwk' }));
  const proof = {
    credentialId: 'AAAA',
    clientDataJSON: clientData.toString('base64url'),
    authenticatorData: authenticatorData.toString('base64url'),
    signature: signature.toString('base64url'),
  };
  const approval = {
    ...{ by: { kind: 'member', id: '4' }, method, acr: 'phr', at: change.at ?? '2026-11-23T10:00:01.000Z' },
    ...{ authTime: '2026-11-23T10:00:00.500Z', proof, publicKey: { kty, crv, x, y, n, e, alg, pub }, rpId },
  };
  const claims = {
    ...{ iss: ISSUER, aud: 'app', sub: 'invocation:1', jti: '2', iat: 1 },
    berth: {
      ...{ v: 1, operation: { id: 'orders.cancel', revision: 1, digest: 'sha256:00', effect: 'irreversible' } },
      ...{
        inputDigest: digestOf(CONTENT.input),
        status: 'succeeded',
        attempts: 1,
        caller: { kind: 'agent_key', id: '3' },
      },
      ...{ createdAt: '2026-11-23T10:00:02.000Z', endedAt: '2026-11-23T10:00:03.000Z', cost: { meters: {} } },
      action: { jobId: '5', digest: digestOf(CONTENT), preparedAt: '2026-11-23T10:00:00.000Z', approval },
    },
  };
  const text = `${encodePart({ alg: 'EdDSA', typ: 'berth-receipt+jwt', kid })}.${encodePart(claims)}`;
  return `${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`;
}

const VERIFIERS = {
  'in Node': async (text: string, options: VerifyReceiptOptions) => verifyReceipt(text, options),
  'with WebCrypto': verifyReceiptInBrowser,
};

for (const [where, verify] of Object.entries(VERIFIERS))
  describe(`a receipt with an approval, verified ${where}`, () => {
    for (const kind of Object.keys(PASSKEY_GENERATORS))
      test(`a receipt with a ${kind} passkey is accepted, and is refused if one bit of the passkey signature is flipped`, async () => {
        const { berth } = await verify(createReceipt({}, kind), { keys, action: CONTENT, input: CONTENT.input });
        assert.equal(berth.action?.approval.by.id, '4');
        await assert.rejects(verify(createReceipt({ isSignatureFlipped: true }, kind), { keys }), ReceiptInvalid);
      });

    const refusedCases: Readonly<Record<string, readonly [Change, RegExp]>> = {
      'the digest of another Action': [{ digest: digestOf({}) }, /another Action/],
      'a page of another host': [{ origin: 'https://evil.example' }, /page with another host name/],
      'a page of a host whose name only ends with the expected host name': [
        { origin: 'https://evilberth.example' },
        /page with another host name/,
      ],
      'a host that is not the host of the issuer': [
        { rpId: 'evil.example', origin: 'https://evil.example' },
        /not the host name of/,
      ],
      'a host that differs from the signed host': [{ signedRpId: 'evil.example' }, /signed for another host/],
      'a user who was not verified': [{ flags: 1 }, /did not verify the user/],
      'a user who was not present': [{ flags: 4 }, /did not verify the user/],
      'the signature of a passkey registration': [{ type: 'webauthn.create' }, /another Action/],
      'an approval after the execution': [{ at: '2026-11-23T10:00:04.000Z' }, /timestamps of the approval/],
      'an approval before the Action': [{ at: '2026-11-23T09:00:00.000Z' }, /timestamps of the approval/],
      'a passkey signature but another approval method': [{ method: 'session' }, /its method is not passkey/],
    };
    for (const [name, [change, message]] of Object.entries(refusedCases))
      test(`verification refuses a receipt with ${name}`, () =>
        assert.rejects(verify(createReceipt(change), { keys }), message));

    test('verification refuses a receipt if the content of the Action is not what was approved', () =>
      assert.rejects(verify(createReceipt(), { keys, action: { ...CONTENT, input: {} } }), /Action does not match/));
  });
