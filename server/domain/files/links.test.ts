import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { addMs, type Clock, systemClock } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import { type ApplicationId, newId } from '../../kit/ids.ts';
import { Secret } from '../../kit/secret.ts';
import { LINK_MS, Links } from './links.ts';

describe('a signed link', () => {
  const application = newId<ApplicationId>(systemClock.now());
  let now = systemClock.now();
  const clock: Clock = { ...systemClock, now: () => now };
  const links = new Links(new Secret('s'.repeat(64)), 'https://berth.test', clock);
  const linked = { application, object: 'download:0192f7c2' } as const;
  const tokenOf = (url: string): string => url.slice('https://berth.test/v1/browsers/files/'.length);
  const refused = (token: string, code: string): void =>
    assert.throws(
      () => links.read(token),
      error => isFault(error, code),
    );

  it('is valid for six hours, and identifies its object', () => {
    const made = links.make(linked);
    assert.equal(made.expiresAt.getTime() - now.getTime(), LINK_MS);
    assert.deepEqual(links.read(tokenOf(made.url)), linked);
    now = addMs(now, LINK_MS - 1);
    assert.deepEqual(links.read(tokenOf(made.url)), linked);
    now = addMs(now, 1);
    refused(tokenOf(made.url), 'signed_url_expired');
  });

  it('is refused if any part is altered', () => {
    const token = tokenOf(links.make(linked).url);
    const [encoded = '', signature = ''] = token.split('.');
    const words = Buffer.from(encoded, 'base64url').toString();
    const [version, verb, app, object, expiry] = words.split(' ');
    const foreign = newId<ApplicationId>(now);
    for (const altered of [
      ['2', verb, app, object, expiry],
      [version, 'DELETE', app, object, expiry],
      [version, verb, foreign, object, expiry],
      [version, verb, app, 'download:0192f7c3', expiry],
      [
        version,
        verb,
        app,
        object,
        addMs(now, 10 * LINK_MS)
          .getTime()
          .toString(36),
      ],
      [version, verb, app, object],
      [version, verb, app, object, expiry, 'more'],
    ])
      refused(`${Buffer.from(altered.join(' ')).toString('base64url')}.${signature}`, 'signed_url_invalid');
    for (let at = 0; at < token.length; at++) {
      const other = token[at] === 'A' ? 'B' : 'A';
      refused(token.slice(0, at) + other + token.slice(at + 1), 'signed_url_invalid');
    }
    for (const broken of [
      '',
      '.',
      encoded,
      `${encoded}.`,
      `.${signature}`,
      `${token}.`,
      `${token}=`,
      `${encoded}=.${signature}`,
    ])
      refused(broken, 'signed_url_invalid');
  });

  it('is refused if it was signed with the secret of another installation', () => {
    const others = new Links(new Secret('t'.repeat(64)), 'https://berth.test', clock);
    refused(tokenOf(others.make(linked).url), 'signed_url_invalid');
  });
});
