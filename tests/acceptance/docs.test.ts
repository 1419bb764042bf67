import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OPERATION_IDS, operation } from '../../contract/operations.ts';
import { DESKTOP_DARK, ensureConsoleBuilt, openWatchedPage, PHONE } from '../harness/console.ts';
import { loadExamples } from '../harness/examples.ts';
import { startServer } from '../harness/server.ts';

await ensureConsoleBuilt();
const server = await startServer();

// ---- examples ------------------------------------------------------------------------------------------------------

for (const [document, blocks] of loadExamples())
  test(`the examples of ${document} run as written`, async () => {
    for (const { line, run } of blocks) assert.notEqual(await run(server), '', `line ${line} prints something`);
    const openSessionsResponse = await server.api<Array<{ id: string }>>(
      'GET',
      '/v1/browsers/sessions?status=PENDING,RUNNING',
    );
    for (const { id } of openSessionsResponse.body) {
      // A session whose client has disconnected may already have ended.
      const releaseResponse = await server.api('POST', `/v1/browsers/sessions/${id}`, {
        body: { status: 'REQUEST_RELEASE' },
      });
      if (releaseResponse.status !== 200) await server.waitUntilEnded(id);
    }
  });

// ---- the site --------------------------------------------------------------------------------------------------------

async function text(path: string): Promise<string> {
  const response = await fetch(`${server.url}${path}`);
  assert.equal(response.status, 200, path);
  return response.text();
}

const linksOf = (page: string): string[] => [...page.matchAll(/<a [^>]*href="([^"]+)"/g)].map(match => match[1] ?? '');

test('every page of the documentation site can be reached from its start page, and every link within the site has a target', async () => {
  const pages = new Map<string, string>();
  const pathsToVisit = ['/docs'];
  for (let path = pathsToVisit.pop(); path !== undefined; path = pathsToVisit.pop()) {
    if (pages.has(path)) continue;
    const page = await text(path);
    pages.set(path, page);
    for (const link of linksOf(page)) {
      assert.match(link, /^(\/|#|https:)/, `${path} links to ${link}`);
      const [target = ''] = link.split('#', 1);
      if (target.startsWith('/docs') && !target.endsWith('.yaml')) pathsToVisit.push(target);
    }
  }
  for (const [path, page] of pages)
    for (const link of linksOf(page)) {
      const [target, hash] = link.split('#', 2);
      if (!hash || (target && !target.startsWith('/docs'))) continue;
      const targetPage = pages.get(target || path) ?? '';
      assert.ok(
        targetPage.includes(`id="${hash}"`),
        `${path} links to ${link}, but the page has no element with this id`,
      );
    }
  for (const path of ['/docs/guides/stagehand', '/docs/security', '/docs/reference/errors', '/docs/api'])
    assert.ok(pages.has(path), path);
});

test('the documentation site loads no resources from other servers', async () => {
  for (const path of ['/docs', '/docs/api'])
    for (const [, address] of (await text(path)).matchAll(/<(?:script|img|iframe|link)[^>]*\b(?:src|href)="([^"]*)"/g))
      assert.match(String(address), /^\/(?!\/)/);
});

test('the API reference lists every operation with its path', async () => {
  const referenceText = (await text('/docs/api')).replace(/<[^>]*>/g, '');
  for (const { method, path } of OPERATION_IDS.map(operation))
    assert.ok(referenceText.includes(`${method} ${path}`), path);
});

test('an unknown documentation path returns 404, with the error body for programs and a page that links to the start page for browsers', async () => {
  const { status, body } = await server.api('GET', '/docs/none', { key: null });
  assert.deepEqual([status, body.code], [404, 'route_not_found']);
  const page = await server.api<string>('GET', '/docs/none', { key: null, headers: { accept: 'text/html,*/*;q=0.8' } });
  assert.equal(page.status, 404);
  assert.match(page.text, /<h1[^>]*>.*Page not found/s);
  assert.match(page.text, /<a href="\/docs">start of the docs<\/a>/);
});

test('a documentation page contains no scripts except those of the documentation site', async () => {
  const page = await text('/docs/operating');
  assert.doesNotMatch(page, /<script(?! type="module" src="\/docs\/assets\/)/);
});

for (const [name, look] of Object.entries({ DESK_DARK: DESKTOP_DARK, PHONE }))
  test(`the documentation site can be read and searched, and has no serious accessibility findings: ${name}`, async () => {
    const watchedPage = await openWatchedPage(look, server.url);
    const { page } = watchedPage;
    for (const path of ['/docs', '/docs/operating', '/docs/reference/errors', '/docs/guides/playwright', '/docs/api']) {
      await page.goto(`${server.url}${path}`);
      await page.locator('h1').waitFor();
      assert.deepEqual(await watchedPage.runAxe(), [], path);
      assert.equal(await watchedPage.overflows(), false, path);
    }
    const search = page.getByRole('combobox', { name: 'Search the docs' });
    await search.fill('tls proxy');
    await page.getByRole('option').first().waitFor();
    await search.press('Enter');
    await page.waitForURL(/operating#behind-a-tls-proxy/);
    assert.deepEqual(watchedPage.violations, []);
    await watchedPage.close();
  });

test('the search of the documentation site loads its index again after a failed attempt', async () => {
  const watchedPage = await openWatchedPage(DESKTOP_DARK, server.url);
  const { page } = watchedPage;
  await page.route('**/search*.json', route => route.fulfill({ status: 503, body: 'busy' }));
  await page.goto(`${server.url}/docs`);
  const search = page.getByRole('combobox', { name: 'Search the docs' });
  const pageErrorEvent = page.waitForEvent('pageerror');
  await search.focus();
  await pageErrorEvent;
  await page.unrouteAll({ behavior: 'wait' });
  await search.fill('tls proxy');
  await page.getByRole('option').first().waitFor();
  await watchedPage.close();
});
