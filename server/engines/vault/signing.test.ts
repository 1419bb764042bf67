import assert from 'node:assert/strict';
import { createHmac, createPrivateKey } from 'node:crypto';
import { test } from 'node:test';
import { CompactSign } from 'jose';
import { newSigningKey, sign, verify } from './signing.ts';

const TYP = 'berth-test+jwt';
const key = await newSigningKey();
const keys = new Map([[key.kid, key.jwk]]);
const jws = await sign(key, TYP, Buffer.from('{"a":1}'));
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const [, payload = ''] = jws.split('.');

test('verifies a value that was signed with a retired key', async () => {
  const next = await newSigningKey();
  const both = new Map([[next.kid, next.jwk], ...keys]);
  assert.equal((await verify(jws, TYP, both))?.toString(), '{"a":1}');
});

test('rejects a value with another type, an unknown key or a changed character', async () => {
  const assertRejected = async (text: string, typ = TYP, known: ReadonlyMap<string, typeof key.jwk> = keys) =>
    assert.equal(await verify(text, typ, known), undefined, text);
  await assertRejected(jws, 'other+jwt');
  await assertRejected(jws, TYP, new Map());
  const otherKey = await newSigningKey();
  await assertRejected(jws, TYP, new Map([[key.kid, otherKey.jwk]]));
  for (let at = 0; at < jws.length - 1; at += 7)
    await assertRejected(`${jws.slice(0, at)}${jws[at] === 'A' ? 'B' : 'A'}${jws.slice(at + 1)}`);
  for (const text of ['', '..', 'a.b.c', `${part({ alg: 'none', typ: TYP, kid: key.kid })}.${payload}.`])
    await assertRejected(text);
  const privateKey = createPrivateKey({ key: key.privateKey.reveal(), format: 'der', type: 'pkcs8' });
  for (const header of [{ jwk: { kty: 'OKP' } }, { jku: 'https://a.test' }, { x5u: 'https://a.test' }]) {
    const jwsBuilder = new CompactSign(Buffer.from('{}')).setProtectedHeader({
      alg: 'EdDSA',
      typ: TYP,
      kid: key.kid,
      ...header,
    });
    await assertRejected(await jwsBuilder.sign(privateKey));
  }
  // Signs with the public key as an HMAC secret.
  const head = part({ alg: 'HS256', typ: TYP, kid: key.kid });
  const mac = createHmac('sha256', JSON.stringify(key.jwk)).update(`${head}.${payload}`).digest('base64url');
  await assertRejected(`${head}.${payload}.${mac}`);
});
