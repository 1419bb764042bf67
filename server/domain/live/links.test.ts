import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TestClock } from '../../../tests/harness/test-clock.ts';
import { addMs } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import type { KeyId, SessionId } from '../../kit/ids.ts';
import { Secret } from '../../kit/secret.ts';
import { LiveLinks } from './links.ts';

const session = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10' as SessionId;
const otherSession = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d11';
const keyId = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d12' as KeyId;
const clock = new TestClock();
const links = new LiveLinks(new Secret('a secret of this installation, long enough'), clock);
const claims = { session, right: 'view', expiresAt: addMs(clock.now(), 60_000), epoch: 3, keyId } as const;

const hasFaultCode = (code: string) => (error: unknown) => isFault(error, code);

describe('live view tokens', () => {
  test('reading a token returns its original claims, with the expiry rounded up to whole seconds', () => {
    const read = links.read(links.tokenOf({ ...claims, page: 'C2FE' }), session);
    const expiresAt = new Date(1000 * Math.ceil(claims.expiresAt.getTime() / 1000));
    assert.deepEqual(read, { ...claims, page: 'C2FE', expiresAt });
    assert.equal('page' in links.read(links.tokenOf(claims), session), false);
  });

  test('a token is refused for another session', () => {
    assert.throws(() => links.read(links.tokenOf(claims), otherSession), hasFaultCode('signed_url_invalid'));
  });

  test('a token is refused if a single character was changed', () => {
    const token = links.tokenOf(claims);
    for (let at = 3; at < token.length; at++) {
      const changedToken = `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
      assert.throws(() => links.read(changedToken, session), hasFaultCode('signed_url_invalid'), `character ${at}`);
    }
  });

  test('a token is refused if its permission was changed from view to control', () => {
    const [, signature] = links.tokenOf(claims).split('.');
    const forgedClaims = Buffer.from(JSON.stringify([session, 'control', '', 4_000_000_000, 3, keyId])).toString(
      'base64url',
    );
    assert.throws(() => links.read(`lv_${forgedClaims}.${signature}`, session), hasFaultCode('signed_url_invalid'));
  });

  test('a token is refused by another installation', () => {
    const foreignLinks = new LiveLinks(new Secret('a secret of another installation, as long'), clock);
    assert.throws(() => links.read(foreignLinks.tokenOf(claims), session), hasFaultCode('signed_url_invalid'));
  });

  test('a token is refused after its expiry', async () => {
    const late = new TestClock();
    const token = new LiveLinks(new Secret('x'.repeat(32)), late).tokenOf(claims);
    late.advance(61_000);
    assert.throws(
      () => new LiveLinks(new Secret('x'.repeat(32)), late).read(token, session),
      hasFaultCode('signed_url_expired'),
    );
  });
});
