import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CUT, isSecretName, REDACTED, redactHeaders, redactText, redactUrl } from './redact.ts';

const SECRET = 'hunter2-S3cr3t';

describe('redactUrl', () => {
  for (const url of [
    `https://user:${SECRET}@shop.test/a?b=c`,
    `https://${SECRET}@shop.test/`,
    `wss://x:${SECRET}@shop.test`,
    `view-source:https://user:${SECRET}@shop.test/`,
    `blob:https://user:${SECRET}@shop.test/id`,
    `https://user:p@${SECRET}@shop.test/`,
    `https:\\\\user:${SECRET}@shop.test/`,
    `https://shop.test/?token=${SECRET}`,
    `https://shop.test/?a=b&access_token=${SECRET}&c=d`,
    `https://shop.test/#access_token=${SECRET}&state=1`,
    `https://shop.test/#/callback?code=${SECRET}`,
    `https://shop.test/cb?Api-Key=${SECRET}`,
    `https://shop.test/cb?user%5Bpassword%5D=${SECRET}`,
    `https://bucket.test/x?X-Amz-Signature=${SECRET}&X-Amz-Date=1`,
    `https://shop.test/login;jsessionid=${SECRET}`,
    `https://shop.test/?next=${encodeURIComponent(`https://a.test/?token=${SECRET}`)}`,
    `https://shop.test/?next=${encodeURIComponent(`https://u:${SECRET}@a.test/`)}`,
    `data:text/html,${SECRET}`,
    `javascript:login('${SECRET}')`,
    `https://shop.test/?newPassword=${SECRET}`,
    `/relative?password=${SECRET}`,
  ])
    it(`redacts ${url.replaceAll(SECRET, '…')}`, () => assert.ok(!redactUrl(url).includes(SECRET), redactUrl(url)));

  it('does not change URLs without secrets', () => {
    for (const url of [
      'https://shop.test/a/b?q=shoes&page=2#top',
      'https://shop.test/?to=ada@lovelace.test',
      'about:blank',
      'chrome-error://chromewebdata/',
      'https://shop.test/@ada?x=%5B1%5D',
      '',
    ])
      assert.equal(redactUrl(url), url);
    assert.equal(
      redactUrl(`https://u:${SECRET}@shop.test/a?b=1&token=${SECRET}&c=2`),
      `https://${REDACTED}@shop.test/a?b=1&token=${REDACTED}&c=2`,
    );
  });

  it('returns well-formed text of limited length for deeply nested or escaped URLs and for lone surrogates, and redacts nested secrets', () => {
    for (const url of [
      'http://a/?u=/\ud800?token=x',
      `http://a/?u=${'%25'.repeat(9_000)}`,
      `http://a/${'?u=/'.repeat(20_000)}`,
      `${'blob:'.repeat(20_000)}//`,
      `/${';u=/?'.repeat(20_000)}`,
    ])
      assert.ok(redactUrl(url).isWellFormed() && redactUrl(url).length < 2100);
    const nestedUrl = (depth: number, inner: string): string =>
      depth === 0 ? inner : `https://a.test/?u=${encodeURIComponent(nestedUrl(depth - 1, inner))}`;
    for (const depth of [1, 2, 3, 4, 5, 6]) {
      const cleanUrl = redactUrl(nestedUrl(depth, `https://a.test/?token=${SECRET}`));
      assert.ok(!cleanUrl.includes(SECRET), cleanUrl);
    }
  });

  it('redacts the whole authority of a URL if the authority is longer than the scanned part', () => {
    const cleanUrl = redactUrl(`https://user:${SECRET}${'x'.repeat(9_000)}@shop.test/`);
    assert.ok(!cleanUrl.includes(SECRET), cleanUrl);
  });

  it('redacts a secret at any position of a URL that is truncated', () => {
    for (const filler of ['a=b&', 'pw=x&', `token=${'x'.repeat(40)}&`, 'n=%2Fa%3Fb%3Dc&'])
      for (let count = 0; count <= 800; count += 1 + (count % 7)) {
        const url = `https://a.test/?${filler.repeat(count)}token=${SECRET}&${filler.repeat(800)}`;
        for (const each of [url, `https://b.test/?next=${encodeURIComponent(url)}`]) {
          const cleanUrl = redactUrl(each);
          assert.ok(!cleanUrl.includes(SECRET.slice(0, 4)) && cleanUrl.length < 2100, cleanUrl);
        }
      }
  });

  it('redacts a long URL in the same way each time, also after many other URLs', () => {
    const urlOf = (at: number): string => `https://a.test/${'x'.repeat(1200)}?n=${at}&token=${SECRET}${at}&end=${at}`;
    for (let round = 0; round < 3; round++)
      for (let at = 0; at < 100; at++)
        for (const url of [urlOf(at), urlOf(0)])
          assert.equal(redactUrl(url), url.replace(/token=[^&]*/, `token=${REDACTED}`));
  });

  it('distinguishes an authority that ends after the scanned part from one that ends with it', () => {
    const head = `https://${'u'.repeat(8_184)}`;
    const cutUrl = redactUrl(`${head}:${SECRET}@a.test/`);
    assert.equal(head.length, 8_192);
    assert.notEqual(redactUrl(head), cutUrl);
    assert.equal(redactUrl(`${head}:${SECRET}@a.test/`), cutUrl);
    assert.equal(cutUrl, REDACTED + CUT);
  });

  it('truncates long URLs', () => {
    const url = redactUrl(`https://shop.test/${'x'.repeat(5000)}`);
    assert.ok(url.length < 2100 && url.endsWith(CUT));
  });
});

describe('redactHeaders', () => {
  it('keeps the names of headers, and redacts credentials in their values', () => {
    const cleanHeaders = redactHeaders({
      Authorization: `Bearer ${SECRET}`,
      'Proxy-Authorization': `Basic ${SECRET}`,
      cookie: `sid=${SECRET}`,
      'Set-Cookie': `sid=${SECRET}; HttpOnly\nb=${SECRET}`,
      'X-Api-Key': SECRET,
      'x-csrf-token': SECRET,
      Location: `/cb?code=${SECRET}`,
      Referer: `https://u:${SECRET}@shop.test/`,
      'X-Note': `Bearer ${SECRET}`,
      'content-type': 'text/html',
    });
    assert.ok(!JSON.stringify(cleanHeaders).includes(SECRET), JSON.stringify(cleanHeaders));
    assert.equal(cleanHeaders['content-type'], 'text/html');
    assert.equal(cleanHeaders.Authorization, REDACTED);
    assert.deepEqual(Object.keys(cleanHeaders).length, 10);
  });

  it('limits the size of headers with oversized or non-string values', () => {
    const cleanHeaders = redactHeaders({ a: { toString: 1 }, b: 1, c: null, ['d'.repeat(9_000)]: 'x'.repeat(900_000) });
    assert.ok(JSON.stringify(cleanHeaders).length < 3_000);
  });
});

describe('redactText', () => {
  for (const text of [
    `Authorization: Bearer ${SECRET}`,
    `sent with Basic ${SECRET}`,
    `password=${SECRET}`,
    `{"password":"${SECRET}"}`,
    `{ apiKey: '${SECRET}' }`,
    `Cookie: a=1; sid=${SECRET}`,
    `Set-Cookie: sid=${SECRET}; Path=/`,
    `GET https://u:${SECRET}@shop.test/ failed`,
    `see https://shop.test/?token=${SECRET}.`,
    `x-eyJhbGciOiJIUzI1NiJ9.${'x'.repeat(900)}.dozjgNryP4J3jVmNHl0w5N ${'-eyJaaaaaa'.repeat(300)} token=${SECRET}`,
    'id eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U end',
  ])
    it(`redacts ${text.replaceAll(SECRET, '…').slice(0, 60)}`, () => {
      const cleanText = redactText(text);
      assert.ok(!cleanText.includes(SECRET) && !cleanText.includes('dozjgNryP4J3jVmNHl0w5N'), cleanText);
      assert.ok(cleanText.includes(REDACTED));
    });

  it('does not change text without secrets', () => {
    for (const text of [
      'hello',
      'TypeError: x is not a function\n    at f (https://shop.test/a.js:1:2)',
      'a: b, c = d',
      'status code: 404',
    ])
      assert.equal(redactText(text), text);
  });
});

describe('isSecretName', () => {
  for (const name of [
    'token',
    'access_token',
    'X-Api-Key',
    'password',
    'newPassword',
    'client_secret',
    'code',
    'sig',
    'user[password]',
    'PHPSESSID',
  ])
    it(`isSecretName is true for ${name}`, () => assert.ok(isSecretName(name)));
  for (const name of ['q', 'page', 'id', 'user', 'monkey', 'zipcode', 'encoding', 'sort', 'keyword'])
    it(`isSecretName is false for ${name}`, () => assert.ok(!isSecretName(name)));
});
