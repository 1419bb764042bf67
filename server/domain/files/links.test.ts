import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { addMs, type Clock, systemClock } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import { type ApplicationId, newId } from '../../kit/ids.ts';
import { Secret } from '../../kit/secret.ts';
import { LINK_LIFETIME_MS, Links } from './links.ts';

describe('a signed link', () => {
  const application = newId<ApplicationId>(systemClock.now());
  let now = systemClock.now();
  const clock: Clock = { ...systemClock, now: () => now };
  const links = new Links(new Secret('s'.repeat(64)), 'https://berth.test', clock);
  const linkedObject = { application, object: 'download:0192f7c2' } as const;
  const tokenOf = (url: string): string => url.slice('https://berth.test/v1/browsers/files/'.length);
  const assertRefused = (token: string, code: string): void =>
    assert.throws(
      () => links.read(token),
      error => isFault(error, code),
    );

  it('is valid for six hours, and identifies its object', () => {
    const link = links.make(linkedObject);
    assert.equal(link.expiresAt.getTime() - now.getTime(), LINK_LIFETIME_MS);
    assert.deepEqual(links.read(tokenOf(link.url)), linkedObject);
    now = addMs(now, LINK_LIFETIME_MS - 1);
    assert.deepEqual(links.read(tokenOf(link.url)), linkedObject);
    now = addMs(now, 1);
    assertRefused(tokenOf(link.url), 'signed_url_expired');
  });

  it('is refused if any part is altered', () => {
    const token = tokenOf(links.make(linkedObject).url);
    const [encoded = '', signature = ''] = token.split('.');
    const payload = Buffer.from(encoded, 'base64url').toString();
    const [version, verb, app, object, expiry] = payload.split(' ');
    const otherApplication = newId<ApplicationId>(now);
    for (const alteredFields of [
      ['2', verb, app, object, expiry],
      [version, 'DELETE', app, object, expiry],
      [version, verb, otherApplication, object, expiry],
      [version, verb, app, 'download:0192f7c3', expiry],
      [
        version,
        verb,
        app,
        object,
        addMs(now, 10 * LINK_LIFETIME_MS)
          .getTime()
          .toString(36),
      ],
      [version, verb, app, object],
      [version, verb, app, object, expiry, 'more'],
    ])
      assertRefused(`${Buffer.from(alteredFields.join(' ')).toString('base64url')}.${signature}`, 'signed_url_invalid');
    for (let at = 0; at < token.length; at++) {
      const otherChar = token[at] === 'A' ? 'B' : 'A';
      assertRefused(token.slice(0, at) + otherChar + token.slice(at + 1), 'signed_url_invalid');
    }
    for (const brokenToken of [
      '',
      '.',
      encoded,
      `${encoded}.`,
      `.${signature}`,
      `${token}.`,
      `${token}=`,
      `${encoded}=.${signature}`,
    ])
      assertRefused(brokenToken, 'signed_url_invalid');
  });

  it('is refused if it was signed with the secret of another installation', () => {
    const otherLinks = new Links(new Secret('t'.repeat(64)), 'https://berth.test', clock);
    assertRefused(tokenOf(otherLinks.make(linkedObject).url), 'signed_url_invalid');
  });
});
