import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { USER_CODE_ALPHABET } from '../../../contract/device.ts';
import { Secret } from '../../kit/secret.ts';
import { formatUserCode, newUserCode, normalizeUserCode, userCodeDigest, verifierMatches } from './codes.ts';

test('a user code has eight characters from its alphabet, and is displayed in two groups', () => {
  const codes = Array.from({ length: 500 }, newUserCode);
  assert.equal(new Set(codes).size, codes.length);
  for (const code of codes) assert.match(code, new RegExp(`^[${USER_CODE_ALPHABET}]{8}$`));
  assert.equal(formatUserCode('KQTM7HXD'), 'KQTM-7HXD');
});

test('ignores case, spaces and dashes in a typed code', () => {
  for (const typedCode of ['kqtm-7hxd', ' KQTM 7HXD ', 'kq\u2013tm7\u00a0hxd', 'KQTM7HXD'])
    assert.equal(normalizeUserCode(typedCode), 'KQTM7HXD', typedCode);
});

test('the digest of a user code depends on the secret of the installation', () => {
  const digest = userCodeDigest(new Secret('one'), 'KQTM7HXD');
  assert.ok(!digest.equals(userCodeDigest(new Secret('other'), 'KQTM7HXD')));
  assert.ok(digest.equals(userCodeDigest(new Secret('one'), 'KQTM7HXD')));
  assert.ok(!digest.equals(createHash('sha256').update('KQTM7HXD').digest()));
});

test('accepts a verifier only for its own challenge', () => {
  const verifier = 'v'.repeat(43);
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  assert.ok(verifierMatches(challenge, verifier));
  assert.ok(!verifierMatches(challenge, `${verifier}x`));
  assert.ok(!verifierMatches(verifier, verifier));
});
