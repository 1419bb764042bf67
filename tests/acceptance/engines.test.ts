// Both engines offer sessions with the same API. A create is refused if it needs a feature that its engine lacks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DownloadPage } from '../../contract/files.ts';
import { ENGINES, type Engine } from '../../contract/sessions.ts';
import { createContext, persistentBody, waitForVersion } from '../harness/contexts.ts';
import { allMarks, findMarks, LOGIN_PAGES, leaveMarks, runOnPage } from '../harness/logged-in.ts';
import { FILE_TEXT, openPages } from '../harness/pages.ts';
import { decodePng } from '../harness/png.ts';
import { fetchFilm, waitForPlaylist } from '../harness/recordings.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const pages = await openPages(LOGIN_PAGES);
const server = await startServer({ pages, env: { BERTH_ENGINE: undefined } });

const on = (engine: Engine, more: object = {}) => ({ browserSettings: { engine, ...more } });

for (const engine of ENGINES) {
  test(`${engine}: a page can be opened, captured in a screenshot and recorded, and can start a download`, async () => {
    const { id, connectUrl } = await server.createSession(on(engine));
    await runOnPage(connectUrl, async page => {
      await page.goto(`${pages.url}/colours`);
      assert.equal(await page.title(), 'Colours');
      const picture = decodePng(await page.screenshot());
      assert.deepEqual([picture.width, picture.height], [1280, 720]);
      assert.deepEqual([picture.colourAt(50, 50), picture.colourAt(150, 50)], ['#ff0000', '#00ff00']);
      const playlist = await waitForPlaylist(server, id, '0', text => text.includes('#EXTINF'));
      assert.ok((await fetchFilm(playlist)).length > 500, 'the recording has frames');
      await page.goto(`${pages.url}/download-page`);
      await page.click('#get');
      const { downloads } = await eventually(
        'the download to be listed',
        async () => (await server.api<DownloadPage>('GET', `/v1/browsers/downloads?sessionId=${id}`)).body,
        ({ total }) => total === 1,
      );
      assert.equal(await (await fetch(String(downloads[0]?.downloadUrl))).text(), FILE_TEXT);
    });
    assert.equal((await server.read(id)).browserSettings?.engine, engine);
    await server.release(id).catch(() => {});
  });

  test(`${engine}: a context keeps a login from one session to the next`, async () => {
    const context = await createContext(server);
    const body = persistentBody(context.id);
    const firstSession = await server.createSession(on(engine, body.browserSettings));
    await runOnPage(firstSession.connectUrl, page => leaveMarks(page, pages.url, engine));
    await waitForVersion(server, context.id, 1);
    const secondSession = await server.createSession(on(engine, body.browserSettings));
    const foundMarks = await runOnPage(secondSession.connectUrl, page => findMarks(page, pages.url));
    assert.deepEqual(foundMarks, allMarks(engine));
    await server.waitUntilEnded(secondSession.id);
  });
}

test('a create request without settings uses the chromium engine', async () => {
  const { id } = await server.createSession();
  assert.equal((await server.read(id)).browserSettings?.engine, 'chromium');
  await server.release(id);
});

const ID = '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d10';
const REFUSED_BODIES: Readonly<Record<string, object>> = {
  'browserSettings.extensionIds': on('headless-shell', { extensionIds: [ID] }),
  'browserSettings.enablePdfViewer': on('headless-shell', { enablePdfViewer: true }),
  'proxySettings.caCertificates': { ...on('headless-shell'), proxySettings: { caCertificates: [ID] } },
};
for (const [field, body] of Object.entries(REFUSED_BODIES))
  test(`headless-shell: a create request with ${field} is refused, and the error suggests the chromium engine`, async () => {
    const { status, body: errorBody } = await server.api('POST', '/v1/browsers/sessions', { body });
    assert.equal(status, 422);
    assert.equal(errorBody.code, 'feature_unavailable');
    assert.equal(errorBody.details?.field, field);
    assert.match(errorBody.message ?? '', /browserSettings\.engine to chromium/);
  });
