import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { chromium, type Locator, type Page } from 'playwright-core';
import { type AgentKey, BROWSER_SCOPES } from '../../contract/agent-keys.ts';
import type { ErrorBody } from '../../contract/common.ts';
import type { Context } from '../../contract/contexts.ts';
import type { Session } from '../../contract/sessions.ts';
import { boxProcessesOf, kill } from '../faults/victims.ts';
import { DESKTOP, ensureConsoleBuilt, findConsoleLink, openWatchedPage, visitSessions } from '../harness/console.ts';
import { waitForVersion } from '../harness/contexts.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { createOwnerToken, readLimits } from '../harness/limits.ts';
import { FILE_NAME, openPages } from '../harness/pages.ts';
import { CHECKOUT, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const builtFolder = await ensureConsoleBuilt();
const pages = await openPages();
const server = await startServer({ pages, env: { BERTH_ENGINE: LIGHT_ENGINE } });

const link = findConsoleLink(server);
const token = await createOwnerToken(server);

const BUNDLE_BYTES_MAX = 350 * 1024;

// ---- static files --------------------------------------------------------------------------------------------------

test('console files with a digest in their name are compressed and cached forever, and the console page is checked for changes before each use', async () => {
  const page = await fetch(`${server.url}/console`);
  const text = await page.text();
  assert.equal(page.headers.get('cache-control'), 'no-cache');
  const script = /src="(\/console\/assets\/[^"]+\.js)"/.exec(text)?.[1];
  assert.ok(script);
  for (const [accepted, coding] of [
    ['gzip, deflate, br', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['br;q=0 , gzip', 'gzip'],
    ['br;q=0.5 , gzip;q=0', 'br'],
    ['identity', null],
  ] as const) {
    const fileResponse = await fetch(`${server.url}${script}`, { headers: { 'accept-encoding': accepted } });
    assert.equal(fileResponse.headers.get('content-encoding'), coding, accepted);
    assert.match(fileResponse.headers.get('cache-control') ?? '', /immutable/);
    assert.match(await fileResponse.text(), /createRoot|react/i);
  }
  const secondResponse = await fetch(`${server.url}/console`, {
    headers: { 'if-none-match': page.headers.get('etag') ?? '' },
  });
  assert.equal(secondResponse.status, 304);
});

test('the content security policy of the console allows only its own origin', async () => {
  const policy = (await fetch(`${server.url}/console/host`)).headers.get('content-security-policy') ?? '';
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"])
    assert.ok(policy.includes(part), `${part} is missing in ${policy}`);
  assert.doesNotMatch(policy.replaceAll(server.url, ''), /unsafe|\*|https?:/);
});

/** Sends the path unchanged, whereas `fetch` resolves the `..` in it. */
function getUnresolved(path: string): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const outgoingRequest = request({ hostname, port, path, agent: false }, response => {
      text(response).then(read => resolve({ status: response.statusCode ?? 0, text: read }), reject);
    });
    outgoingRequest.on('error', reject).end();
  });
}

/** Ways to write `..` and the separator after it. */
const PARENT_STEPS = [
  ...['../', '%2e%2e/', '.%2e/', '%2E./', '..%2f', '%2e%2e%2f', '..%5c', '..\\', '%2e%2e\\'],
  ...['..%252f', '%252e%252e/', '%252e%252e%252f', '..%c0%af', '%c0%ae%c0%ae/', '....//', '..;/', './/../'],
];

test('no path gives access to files outside the console folder', async () => {
  const folder = join(builtFolder, 'console');
  const page = readFileSync(join(folder, 'index.html'), 'utf8');
  const outsideFiles = ['docs/index.html', 'live-view/index.html'].map(file => join(builtFolder, file));
  for (const file of [...outsideFiles, join(CHECKOUT, 'package.json')]) {
    assert.ok(existsSync(file), file);
    const [, climbs = '', rest = ''] = /^((?:\.\.\/)+)(.*)$/.exec(relative(folder, file)) ?? [];
    const depth = climbs.length / '../'.length;
    for (const parentStep of PARENT_STEPS)
      for (const [from, levels] of [
        ['', depth],
        ['assets/', depth + 1],
        ['/', depth],
      ] as const)
        for (const ending of ['', '%00', '%00.html', '%2500.js']) {
          const path = `/console/${from}${parentStep.repeat(levels)}${rest}${ending}`;
          const response = await getUnresolved(path);
          // The only document that may be returned is the page of the console itself.
          if (response.status === 200) assert.ok(response.text === page, path);
          else assert.ok([400, 404].includes(response.status), `${response.status} for ${path}`);
          assert.doesNotMatch(response.text, /"name": "berth"/, path);
        }
    for (const path of [`/console/${file}`, `/console/${encodeURIComponent(file)}`, `/console/file:${file}`])
      assert.ok((await getUnresolved(path)).text === page, path);
  }
  assert.equal((await getUnresolved('/console/assets/none.js')).status, 404);
});

test('the first visit to the console downloads less than the size limit', async () => {
  const text = await (await fetch(`${server.url}/console`)).text();
  const files = [...text.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)].map(match => match[1]);
  let totalBytes = 0;
  for (const file of files) {
    const response = await fetch(`${server.url}${file}`, { headers: { 'accept-encoding': 'gzip' } });
    await response.arrayBuffer();
    totalBytes += Number(response.headers.get('content-length'));
  }
  assert.ok(totalBytes > 0 && totalBytes <= BUNDLE_BYTES_MAX, `${totalBytes} bytes gzipped`);
});

// ---- signing in ----------------------------------------------------------------------------------------------------

test('the link that the server prints signs the person in, its token is removed from the address, and a reload keeps the person signed in', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    assert.doesNotMatch(page.url(), /bpt_|#/);
    await page.reload();
    await page.getByText('No sessions yet').waitFor();
    const kept = await page.evaluate<string>('JSON.stringify(localStorage) + document.cookie');
    assert.doesNotMatch(kept, /bpt_|bak_/);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Berth' }).waitFor();
    assert.doesNotMatch(await page.evaluate(() => JSON.stringify(sessionStorage)), /bpt_|bak_/);
  }));

/** Returns the agent keys that consoles have issued and that are active now. */
async function activeConsoleKeys(): Promise<readonly AgentKey[]> {
  const path = `/v1/applications/${server.applicationId}/agent-keys?limit=100`;
  const { body } = await server.api<{ data: AgentKey[] }>('GET', path, { key: token });
  return body.data.filter(({ name, status }) => name === 'Console' && status === 'active');
}

test('concurrent first requests of the console issue a single agent key, which is revoked when the person signs out', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    const session = await server.createSession({ keepAlive: true });
    const keysBefore = await activeConsoleKeys();
    await page.evaluate("sessionStorage.removeItem('berth.keys')");
    await page.goto(`${server.url}/console/a/${server.applicationId}/sessions/${session.id}`);
    await page.getByRole('tab', { name: 'Console' }).click();
    await page.getByRole('tabpanel').waitFor();
    assert.equal((await activeConsoleKeys()).length, keysBefore.length + 1);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await eventually('the key to be revoked', activeConsoleKeys, ({ length }) => length === keysBefore.length);
    await server.release(session.id);
  }));

test('the console asks for confirmation before a link with another token replaces the current sign-in', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    const otherToken = JSON.parse((await server.operate('tokens', 'create', '--name', 'Other', '--json')).stdout).token;
    const readStoredToken = () => page.evaluate<string>("sessionStorage.getItem('berth.token')");
    const ownToken = await readStoredToken();
    await page.evaluate(`location.hash = 'token=${otherToken}'`);
    await page.getByRole('dialog').or(page.getByRole('alertdialog')).waitFor();
    assert.doesNotMatch(page.url(), /bpt_|#/);
    assert.equal(await readStoredToken(), ownToken);
    await page.getByRole('button', { name: 'Cancel' }).click();
    assert.equal(await readStoredToken(), ownToken);
    await page.evaluate(`location.hash = 'token=${otherToken}'`);
    await page.getByRole('button', { name: 'Switch' }).click();
    await eventually('the other token to be signed in', readStoredToken, text => text === otherToken);
    await page.getByRole('heading', { name: 'Sessions', exact: true }).waitFor();
  }));

test('the console refuses an invalid token, and shows the message of the API', async () => {
  const watched = await openWatchedPage(DESKTOP, server.url);
  const { page } = watched;
  await page.goto(`${server.url}/console`);
  await page.getByRole('button', { name: 'Use an access token' }).click();
  await page.getByLabel('Personal access token').fill(server.key);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  assert.match(await page.getByRole('alert').innerText(), /begin with bpt_/);
  await page.getByLabel('Personal access token').fill(`bpt_${'0'.repeat(48)}`);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  const alert = page.getByRole('alert').filter({ hasText: 'Request req_' });
  await alert.waitFor();
  assert.deepEqual(await watched.runAxe(), []);
  assert.deepEqual(watched.violations, []);
  await watched.close();
});

// ---- main workflows ------------------------------------------------------------------------------------------------

/** Waits until the page shows the session that was created with the form, and returns its id. */
async function createdSessionOn(page: Page): Promise<string> {
  await page.getByRole('heading', { name: 'Session', exact: true }).waitFor();
  return /sessions\/([0-9a-f-]{36})/.exec(page.url())?.[1] ?? assert.fail(`no session id in ${page.url()}`);
}

test('a session can be created with the form, watched live, and released', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    await page.getByRole('link', { name: 'New session' }).first().click();
    await page.getByLabel('Ends after, minutes').fill('5');
    await page.getByLabel('Language').fill('de-DE');
    await page.getByLabel('Name', { exact: true }).fill('run');
    await page.getByLabel('Value', { exact: true }).fill("it's r-1842");
    const code = await page.locator('pre').first().innerText();
    assert.match(code, /curl -X POST http/);
    assert.match(code, /"locale": "de-DE"/);
    await page.getByRole('tab', { name: 'Python' }).click();
    assert.match(await page.getByRole('tabpanel').innerText(), /"timeout": 300/);
    await page.getByRole('button', { name: 'Create session' }).click();
    const id = await createdSessionOn(page);
    const createdSession = await server.read(id);
    assert.deepEqual(
      [createdSession.status, createdSession.keepAlive, createdSession.userMetadata],
      ['RUNNING', true, { run: "it's r-1842" }],
    );
    await page.getByRole('tab', { name: 'Events' }).click();
    await page.getByText('Running', { exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'Release' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click();
    await page.getByText('Released by a caller').waitFor();
    assert.equal((await server.read(id)).endReason, 'released');
  }));

test('the list of sessions updates live and can be searched by metadata', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    await page.getByText('Live', { exact: true }).waitFor();
    const session = await server.createSession({ keepAlive: true, userMetadata: { team: { name: 'blue' } } });
    await page.getByRole('link', { name: session.id }).waitFor();
    await server.release(session.id);
    await page.getByRole('listitem').filter({ hasText: session.id }).getByText('Completed').waitFor();
    const search = page.getByRole('searchbox');
    await search.fill('team.name=red');
    await search.press('Enter');
    await page.getByText('No matching sessions').waitFor();
    await search.fill('team.name=blue');
    await search.press('Enter');
    await page.getByRole('link', { name: session.id }).waitFor();
    await search.fill(session.id);
    await search.press('Enter');
    await page.getByText('Released by a caller').waitFor();
  }));

test('sessions can be found by words and filters with the keyboard alone, and a reload restores the search from the address', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    const wantedSession = await server.createSession({ userMetadata: { customer: 'Ärmel 42', step: 'pay' } });
    const otherSession = await server.createSession({ userMetadata: { customer: 'Ärmel 43' } });
    for (const { id } of [wantedSession, otherSession]) await server.release(id);
    const rowOf = ({ id }: { id: string }): Locator => page.getByRole('link', { name: id });
    await rowOf(otherSession).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('ärmel pay 42');
    await page.keyboard.press('Enter');
    await rowOf(otherSession).waitFor({ state: 'detached' });
    await rowOf(wantedSession).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.type('Last 24');
    await page.keyboard.press('Tab');
    await page.keyboard.type('Released');
    await eventually(
      'the filters in the address',
      () => /since=day/.test(page.url()) && /reason=released/.test(page.url()),
    );
    await rowOf(wantedSession).waitFor();
    await page.reload();
    await rowOf(wantedSession).waitFor();
    assert.equal(await rowOf(otherSession).count(), 0);
    await page.getByRole('searchbox').fill('it\'s (not) "there" [0]');
    await page.keyboard.press('Enter');
    await page.getByText('No matching sessions').waitFor();
    await page.getByRole('searchbox').fill("user_metadata['half");
    await page.keyboard.press('Enter');
    await page.getByText(/^q could not be parsed/).waitFor();
    assert.equal(await page.getByRole('alert').count(), 0);
  }));

test('in a window of 1024 pixels, the live view is wider than 680 pixels, and the DevTools link and the Connect tab are visible', () =>
  visitSessions(server, link, { ...DESKTOP, width: 1024 }, async ({ page }) => {
    const session = await server.createSession({ keepAlive: true });
    await page.goto(`${server.url}/console/a/${server.applicationId}/sessions/${session.id}`);
    const frame = page.locator('iframe[title="Live view of the session"]');
    await frame.waitFor();
    assert.ok(((await frame.boundingBox())?.width ?? 0) > 680);
    const tab = await page.getByRole('tab', { name: 'Connect' }).boundingBox();
    assert.ok(tab && tab.x + tab.width < 1000);
    await page.frameLocator('iframe').getByRole('link', { name: 'DevTools' }).waitFor();
    await server.release(session.id);
  }));

test('the live tab shows and controls a running session, and the list of sessions shows its latest frame', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    const session = await server.createSession({ keepAlive: true });
    const browser = await chromium.connectOverCDP(session.connectUrl);
    const visitedPage = browser.contexts()[0]?.pages()[0];
    assert.ok(visitedPage);
    await visitedPage.goto(`${pages.url}/`);
    const locatePicture = (): Locator => page.getByRole('listitem').filter({ hasText: session.id }).locator('img');
    const readWidth = (): Promise<number> => locatePicture().evaluate(image => Reflect.get(image, 'naturalWidth'));
    await eventually('the picture of the running session', readWidth, pixels => pixels > 600);
    await page.getByRole('link', { name: session.id }).click();
    await page.getByRole('tab', { name: 'Live', selected: true }).waitFor();
    const view = page.frameLocator('iframe[title="Live view of the session"]');
    await view.getByRole('button', { name: 'Take control' }).click();
    const address = view.getByRole('textbox', { name: 'Address' });
    await address.fill(`${pages.url}/next`);
    await address.press('Enter');
    await eventually('the address', () => visitedPage.url() === `${pages.url}/next`);
    await view.getByRole('button', { name: 'Give back' }).click();
    await browser.close();
    await server.release(session.id);
    await page.getByText('Released by a caller').waitFor();
    await page.getByRole('link', { name: 'Sessions' }).first().click();
    await eventually('the picture of the session that has ended', readWidth, pixels => pixels > 600);
  }));

test('the tabs of a session show its log, network requests, files and replay with a timeline', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    const session = await server.createSession({ keepAlive: true });
    const browser = await chromium.connectOverCDP(session.connectUrl);
    const visitedPage = browser.contexts()[0]?.pages()[0];
    assert.ok(visitedPage);
    await visitedPage.goto(pages.url);
    await visitedPage.evaluate('console.error("said by the page")');
    await visitedPage.goto(`${pages.url}/download-page`);
    await visitedPage.click('#get');
    await browser.close();

    const at = (tab: string): Promise<unknown> =>
      page.goto(`${server.url}/console/a/${server.applicationId}/sessions/${session.id}?tab=${tab}`);
    await at('console');
    await page.getByText('said by the page').waitFor();
    await at('network');
    await page.getByRole('button', { name: /200 GET.*download-page/ }).click();
    await page.getByRole('dialog').getByText(`${pages.url}/download-page`).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    const har = page.waitForEvent('download');
    await page.getByRole('button', { name: 'HAR file' }).click();
    assert.equal((await har).suggestedFilename(), `${session.id}.har`);
    await at('files');
    const whenDownloaded = page.waitForEvent('download');
    await page.getByRole('link', { name: `Save ${FILE_NAME}` }).click();
    assert.equal((await whenDownloaded).suggestedFilename(), FILE_NAME);
    await page
      .getByLabel('File to upload')
      .setInputFiles({ name: 'cv.txt', mimeType: 'text/plain', buffer: Buffer.from('cv') });
    await page.getByText('/tmp/.uploads/cv.txt').waitFor();

    await server.release(session.id);
    await at('replay');
    await page.locator('video').waitFor();
    const readDuration = (): Promise<number> => page.locator('video').evaluate(video => Reflect.get(video, 'duration'));
    await eventually('the replay to be loaded', readDuration, seconds => seconds > 0);
    await page.getByRole('slider', { name: 'Time' }).waitFor();
    for (const lane of ['Pages', 'Network', 'Console']) await page.getByText(lane, { exact: true }).first().waitFor();
  }));

test('the page of a crashed session shows its end reason, settings, key and last frame', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    const session = await server.createSession({ browserSettings: { locale: 'de-DE', maskInputs: 'all' } });
    const browser = await chromium.connectOverCDP(session.connectUrl);
    await browser.contexts()[0]?.pages()[0]?.goto(pages.url);
    const picturePath = `/v1/browsers/sessions/${session.id}/picture`;
    await eventually(
      'the last frame to be shown',
      () => server.api('GET', picturePath),
      ({ status }) => status === 200,
    );
    const disconnectEvent = new Promise(resolve => browser.once('disconnected', resolve));
    kill(boxProcessesOf(server, session.id).browser);
    await disconnectEvent;
    await page.goto(`${server.url}/console/a/${server.applicationId}/sessions/${session.id}`);
    const banner = page.getByRole('region', { name: 'Why the session ended' });
    await banner.getByText('The browser crashed').waitFor();
    await banner.locator('time[title$="UTC"]').waitFor();
    await page.getByText('yes, all fields masked').waitFor();
    await page.getByText('de-DE').waitFor();
    const poster = page.locator('video[poster^="blob:"]');
    await poster.waitFor();
    await page.getByRole('link', { name: 'Show all sessions of this key' }).click();
    await page.getByRole('link', { name: session.id }).waitFor();
    assert.match(page.url(), /key=/);
  }));

test('a context can be created, used in a session that saves to it, and deleted', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    await page.getByRole('link', { name: 'Contexts' }).click();
    await page.getByRole('button', { name: 'New context' }).click();
    await page.getByLabel('Name').fill('shop-login');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByText('shop-login').first().waitFor();
    await page.goto(`${server.url}/console/a/${server.applicationId}/sessions/new`);
    await page.getByLabel('Context', { exact: true }).selectOption({ label: 'shop-login' });
    await page.getByLabel('Save to the context').check();
    assert.match(await page.locator('pre').first().innerText(), /"persist": true/);
    await page.getByRole('button', { name: 'Create session' }).click();
    const id = await createdSessionOn(page);
    const { body: contexts } = await server.api<Context[]>('GET', '/v1/browsers/contexts');
    const context = contexts.find(({ name }) => name === 'shop-login') ?? assert.fail('the context is not listed');
    assert.equal((await server.read(id)).contextId, context.id);
    await page.getByRole('button', { name: 'Release' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click();
    await page.getByText('Released by a caller').waitFor();
    assert.equal((await waitForVersion(server, context.id, 1)).lastSessionId, id);
    await page.getByRole('link', { name: 'Contexts' }).click();
    // The page caches what it reads for a few seconds, and the context was empty when the page read it.
    await page.reload();
    await page.getByText(/^version 1, /).waitFor();
    await page.getByRole('button', { name: 'Delete shop-login' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No contexts yet').waitFor();
  }));

test('an agent key can be issued, used and revoked', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    await page.getByRole('link', { name: 'Agent keys' }).click();
    await page.getByRole('button', { name: 'Issue a key' }).click();
    const dialog = page.getByRole('dialog');
    const name = dialog.getByLabel('Name');
    await eventually('the first field to have the focus', () => name.evaluate(field => field.matches(':focus')));
    await page.keyboard.type('of the test');
    await dialog.getByRole('button', { name: 'Issue' }).click();
    const key = (await page.getByRole('dialog').locator('pre').innerText()).trim();
    assert.match(key, /^bak_/);
    assert.equal((await server.api('GET', '/v1/browsers/sessions', { key })).status, 200);
    await page.getByLabel('I have stored it').check();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'Revoke of the test' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Revoke of the test' }).waitFor({ state: 'detached' });
    assert.equal((await server.api('GET', '/v1/browsers/sessions', { key })).status, 401);
  }));

test('the address ranges and grants of an agent key can be changed, and the page shows why a grant is refused', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    const createdKey = JSON.parse((await server.operate('keys', 'create', '--name', 'narrow', '--json')).stdout);
    await page.getByRole('link', { name: 'Agent keys' }).click();
    await page.getByRole('button', { name: 'Change narrow' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Address ranges').fill('127.0.0.0/8');
    await dialog.getByRole('button', { name: 'Add a grant' }).click();
    await dialog.getByRole('textbox', { name: 'Operation' }).fill('*');
    await dialog.getByLabel('Calls a day').fill('500');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('alert').waitFor();
    await dialog.getByRole('textbox', { name: 'Operation' }).fill('browser.screenshot');
    await dialog.getByLabel('Input must satisfy').fill('{"type":"object"}');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('Grants: browser.screenshot').waitFor();
    const path = `/v1/applications/${server.applicationId}/agent-keys/${createdKey.id}`;
    const { body } = await server.api<{ cidrAllow: string[]; grants: object[] }>('GET', path, { key: token });
    assert.deepEqual(body.cidrAllow, ['127.0.0.0/8']);
    const grant = { operationId: 'browser.screenshot', maxCallsPerDay: 500, input: { type: 'object' } };
    assert.deepEqual(body.grants, [grant]);
  }));

test('a key can be issued with a grant that lists credentials, which are kept when the key is changed', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    await page.getByRole('link', { name: 'Agent keys' }).click();
    await page.getByRole('button', { name: 'Issue a key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('steps');
    await dialog.getByLabel('Call the operations').check();
    await dialog.getByRole('button', { name: 'Add a grant' }).click();
    assert.equal(await dialog.getByLabel('Credentials').count(), 0);
    await dialog.getByLabel('Operation', { exact: true }).fill('browser.steps');
    await dialog.getByLabel('Credentials').fill('bank, shop');
    await dialog.getByRole('button', { name: 'Issue' }).click();
    await page.getByLabel('I have stored it').check();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'Change steps' }).click();
    await dialog.getByLabel('Calls a day').fill('5');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    const { body } = await server.api<{ data: AgentKey[] }>(
      'GET',
      `/v1/applications/${server.applicationId}/agent-keys?limit=100`,
      { key: token },
    );
    const { scopes, grants } = body.data.find(({ name }) => name === 'steps') ?? assert.fail();
    assert.deepEqual(scopes, [...BROWSER_SCOPES, 'operations:invoke']);
    assert.deepEqual(grants, [{ operationId: 'browser.steps', credentials: ['bank', 'shop'], maxCallsPerDay: 5 }]);
  }));

test('a reload of the console issues no additional agent key', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    const countConsoleKeys = async (): Promise<number> => {
      const { stdout } = await server.operate('keys', 'list', '--json');
      const keys: Array<{ name: string }> = JSON.parse(stdout);
      return keys.filter(({ name }) => name === 'Console').length;
    };
    const keyCountBefore = await countConsoleKeys();
    for (let loads = 0; loads < 3; loads++) {
      await page.reload();
      await page.getByText('Live', { exact: true }).waitFor();
    }
    assert.equal(await countConsoleKeys(), keyCountBefore);
  }));

test('the page of agent keys lists an active key even if there are many inactive keys', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    const token = new URL(link).hash.replace('#token=', '');
    const path = `/v1/applications/${server.applicationId}/agent-keys`;
    const issueKey = async (name: string): Promise<string> => {
      const { status, body } = await server.api<{ id: string }>('POST', path, { key: token, body: { name } });
      assert.equal(status, 201);
      return body.id;
    };
    await issueKey('nightly');
    for (let keyCount = 0; keyCount < 105; keyCount++)
      await server.api('DELETE', `${path}/${await issueKey('ended')}`, { key: token });
    await page.getByRole('link', { name: 'Agent keys' }).click();
    await page.getByRole('button', { name: 'Revoke nightly' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('button', { name: 'Revoke nightly' }).waitFor({ state: 'detached' });
  }));

test('the list of sessions resumes live updates after a restart of the service, and shows why the service refused a request', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    // A service that is shutting down also responds with 204 to a request for a new stream.
    let requestCount = 0;
    await page.route('**/v1/browsers/events*', route => {
      requestCount += 1;
      return requestCount > 1 ? route.continue() : route.fulfill({ status: 204 });
    });
    await page.reload();
    await eventually('the stream to be asked for again', () => requestCount > 1);
    await page.getByText('Live', { exact: true }).waitFor();
    await server.kill('SIGTERM');
    await page.getByText('Not live. Reconnecting').waitFor();
    await server.start();
    await page.getByText('Live', { exact: true }).waitFor();
    const { id } = await server.createSession();
    await page.getByRole('link', { name: id }).waitFor();
    await server.release(id);
    const unknownId = '01900000-0000-7000-8000-000000000000';
    await page.goto(`${server.url}/console/a/${unknownId}/sessions`);
    const refusal = page.getByRole('alert').filter({ hasText: 'does not exist' });
    await refusal.waitFor();
    assert.doesNotMatch(await refusal.innerText(), /does not respond/);
  }));

test('the complete connect address can be copied while its signing key is hidden', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    const { id, connectUrl } = await server.createSession({ keepAlive: true });
    await page.goto(`${server.url}/console/a/${server.applicationId}/sessions/${id}?tab=connect`);
    const panel = page.getByRole('tabpanel');
    await panel.getByText('signingKey=…').first().waitFor();
    const copyAndRead = async (what: string): Promise<string> => {
      await page.getByRole('button', { name: `Copy ${what}` }).click();
      await page.getByRole('status').filter({ hasText: 'Copied' }).first().waitFor();
      return page.evaluate<string>('navigator.clipboard.readText()');
    };
    // The copied address has a signing key for this tab. It opens the same session as `connectUrl`, but has a different
    // signature.
    const address = await copyAndRead('the connect address');
    assert.match(address, /signingKey=[\w.-]{20,}$/);
    assert.equal(address.replace(/signingKey=.*/, ''), connectUrl.replace(/signingKey=.*/, ''));
    assert.ok((await copyAndRead('the code for Playwright')).includes(address));
    await server.release(id);
  }));

test('the list of sessions ignores an unknown filter in the address, and the replay tab shows why a session has no replay', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    const { id } = await server.createSession({ browserSettings: { recordSession: false } });
    await server.release(id);
    await page.goto(`${server.url}/console/a/${server.applicationId}/sessions?show=running`);
    await page.getByRole('button', { name: 'All', pressed: true }).waitFor();
    await page.goto(`${server.url}/console/a/${server.applicationId}/sessions/${id}?tab=replay`);
    await page.getByText('Recording was off for this session.').waitFor();
  }));

test('a limit that is changed in the console applies to the next create request', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    await page.getByRole('link', { name: 'Limits and usage' }).click();
    const field = page.getByLabel('Creates per minute', { exact: true });
    const previousLimit = await field.inputValue();
    for (const [limit, outcome] of [
      ['0', [429, 'rate_limited']],
      [previousLimit, [201, undefined]],
    ] as const) {
      await field.fill(limit);
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText(`of ${limit}`, { exact: true }).waitFor();
      const { effective } = await readLimits(server, token);
      assert.equal(effective.browsers.maxCreatesPerMinute, Number(limit));
      const { status, body } = await server.api<Session & ErrorBody>('POST', '/v1/browsers/sessions', { body: {} });
      assert.deepEqual([status, body.code], outcome);
      if (status === 201) await server.release(body.id);
    }
  }));

const TAB_PRESSES_MAX = 100;

/** Presses Tab until the element has the focus. */
async function tabTo(page: Page, element: Locator): Promise<void> {
  await element.waitFor();
  for (let presses = 0; presses < TAB_PRESSES_MAX; presses++) {
    if (await element.evaluate(it => it.matches(':focus'))) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`${element} did not get the focus after ${TAB_PRESSES_MAX} presses of Tab`);
}

test('a person can create a session, read the code that creates the session, and release the session by keyboard alone', () =>
  visitSessions(server, link, DESKTOP, async ({ page }) => {
    await page.keyboard.press('Tab');
    assert.equal(await page.locator(':focus').innerText(), 'Skip to content');
    await tabTo(page, page.getByRole('link', { name: 'New session' }).first());
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'New session' }).waitFor();
    await tabTo(page, page.getByLabel('Ends after, minutes'));
    await page.keyboard.type('5');
    await tabTo(page, page.getByRole('tab', { name: 'curl' }));
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await page.getByRole('tab', { name: 'TypeScript', selected: true }).waitFor();
    assert.match(await page.getByRole('tabpanel', { name: 'TypeScript' }).innerText(), /timeout: 300/);
    await tabTo(page, page.getByRole('button', { name: 'Create session' }));
    await page.keyboard.press('Enter');
    const id = await createdSessionOn(page);
    assert.equal((await server.read(id)).status, 'RUNNING');
    await tabTo(page, page.getByRole('button', { name: 'Release' }));
    await page.keyboard.press('Enter');
    await tabTo(page, page.getByRole('dialog').getByRole('button', { name: 'Release' }));
    await page.keyboard.press('Enter');
    await page.getByText('Released by a caller').waitFor();
    assert.equal((await server.read(id)).endReason, 'released');
  }));
