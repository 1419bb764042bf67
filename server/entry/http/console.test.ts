import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import fastify from 'fastify';
import { serveConsole } from './console.ts';
import { serveConsumerPages } from './consumer-pages.ts';
import { signInCookie } from './sign-in-cookie.ts';
import { WebFiles } from './web-files.ts';

const PAGES = ['/signin', '/device?code=1', '/approve/1', '/consumer/shop', '/consumer/signin/shop/1'];

const folder = mkdtempSync(join(tmpdir(), 'berth-console-'));
after(() => rmSync(folder, { recursive: true, force: true }));
for (const name of ['index.html', 'home.html', 'signin.html']) writeFileSync(join(folder, name), name);

/**
 * Sends a request with this `Host` header to each sign-in page. Returns the redirect address, or undefined if the page
 * was served.
 */
async function redirectsOf(publicUrl: string, host: string): Promise<readonly unknown[]> {
  const app = fastify();
  const { isOwnOrigin } = signInCookie(publicUrl);
  serveConsole(app, WebFiles.of(folder), isOwnOrigin, async () => []);
  serveConsumerPages(app, WebFiles.of(folder), isOwnOrigin);
  const responses = await Promise.all(PAGES.map(url => app.inject({ url, headers: { host } })));
  await app.close();
  return responses.map(({ statusCode, headers }) => (statusCode === 200 ? undefined : headers.location));
}

test('the sign-in pages redirect 127.0.0.1 and [::1] to localhost, where a browser offers passkeys', async () => {
  for (const host of ['127.0.0.1:8080', '[::1]:8080']) {
    const addresses = PAGES.map(path => `http://localhost:8080${path}`);
    assert.deepEqual(await redirectsOf('http://127.0.0.1:8080', host), addresses);
  }
  const addresses = PAGES.map(path => `http://localhost${path}`);
  assert.deepEqual(await redirectsOf('http://127.0.0.1', '127.0.0.1'), addresses);
});

test('the sign-in pages do not redirect if the public URL is https or has another host name, or if the page is opened at localhost', async () => {
  for (const [publicUrl, host] of [
    ['https://127.0.0.1:8443', '127.0.0.1:8443'],
    ['https://127.0.0.1', '127.0.0.1'],
    ['https://browsers.example', '127.0.0.1:8080'],
    ['http://browsers.example', '127.0.0.1:8080'],
    ['http://127.0.0.1:8080', 'localhost:8080'],
  ] as const)
    assert.deepEqual(await redirectsOf(publicUrl, host), new Array(PAGES.length).fill(undefined), publicUrl);
});
