// The playground in a browser: a snippet controls a session, and can reach nothing else.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Session } from '../../contract/sessions.ts';
import {
  DESKTOP,
  DESKTOP_DARK,
  type DisplaySettings,
  ensureConsoleBuilt,
  findConsoleLink,
  PHONE,
  PHONE_DARK,
  visitSessions,
  type WatchedPage,
} from '../harness/console.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';

await ensureConsoleBuilt();
const pages = await openPages();
const server = await startServer({ pages, env: { BERTH_ENGINE: LIGHT_ENGINE } });
const link = findConsoleLink(server);

const visitPlayground = (look: DisplaySettings, work: (watched: WatchedPage) => Promise<void>): Promise<void> =>
  visitSessions(server, link, look, async watched => {
    await watched.page.goto(`${server.url}/console/a/${server.applicationId}/playground`);
    await watched.page.getByRole('heading', { name: 'Playground', exact: true }).waitFor();
    await work(watched);
  });

const readRunningSessions = async (): Promise<Session[]> =>
  (await server.api<Session[]>('GET', '/v1/browsers/sessions?status=RUNNING')).body;

test('the first snippet of the playground can be run by keyboard alone, the live view is shown, and a second run uses the same session', () =>
  visitPlayground(DESKTOP, async watched => {
    const { page } = watched;
    const run = page.getByRole('button', { name: 'Run' });
    for (let tabs = 0; tabs < 80 && !(await run.evaluate(one => one.matches(':focus'))); tabs += 1)
      await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('The snippet is done.').waitFor();
    await page.getByRole('log').getByText('Greeted').waitFor();
    const live = page.frameLocator('iframe[title="Live view of the session"]');
    await live.getByRole('button', { name: 'Take control' }).waitFor();
    await watched.assertAccessible();
    // The next run uses the same session.
    assert.equal((await readRunningSessions()).length, 1);
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('The snippet is done.').waitFor();
    assert.equal((await readRunningSessions()).length, 1);
    await page.getByRole('button', { name: 'Release' }).click();
    await page.getByText('The session has ended').waitFor();
    assert.equal((await readRunningSessions()).length, 0);
  }));

test('a playground session can be created from JSON, and a snippet can be saved in the browser and deleted again', () =>
  visitPlayground(DESKTOP, async ({ page }) => {
    await page.getByRole('tab', { name: 'As JSON' }).click();
    const body = page.getByLabel('Request body, as JSON');
    await body.fill('{');
    assert.equal(await page.getByRole('button', { name: 'Run' }).isDisabled(), true);
    await body.fill('{ "keepAlive": true, "userMetadata": { "from": "json" } }');
    await page.getByLabel('Code of the snippet').fill(`await page.goto('${pages.url}/next');\nreturn page.title();`);
    await page.getByLabel('Name of the snippet').fill('my title');
    await page.getByRole('button', { name: 'Keep' }).click();
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('log').getByText('Next').waitFor();
    const [session] = await readRunningSessions();
    assert.deepEqual(session?.userMetadata, { from: 'json' });
    await server.release(String(session?.id));
    await page.reload();
    await page.getByLabel('Snippets').selectOption('my title');
    assert.match(await page.getByLabel('Code of the snippet').inputValue(), /page\.title/);
    await page.getByRole('button', { name: 'Forget' }).click();
    assert.equal(await page.getByLabel('Snippets').getByText('my title').count(), 0);
  }));

test('the playground shows why a snippet failed, and a snippet that does not end can be stopped', () =>
  visitPlayground(DESKTOP, async ({ page }) => {
    const code = page.getByLabel('Code of the snippet');
    await code.fill("await page.click('#nothing');");
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('The snippet failed.').waitFor();
    await page.getByRole('log').getByText('#nothing').waitFor();
    await code.fill("console.log('began'); await new Promise(() => {});");
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('log').getByText('began').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('The snippet was stopped.').waitFor();
    assert.equal(await page.locator('iframe[title="Snippet runner"]').count(), 0);
    await page.getByRole('button', { name: 'Release' }).click();
    await page.getByText('The session has ended').waitFor();
  }));

test('a snippet that is stopped while its browser is starting does not run', () =>
  visitPlayground(DESKTOP, async ({ page }) => {
    const whenStopped = Promise.withResolvers<void>();
    const whenCreated = Promise.withResolvers<void>();
    await page.route('**/v1/browsers/sessions', async route => {
      const response = await route.fetch();
      await whenStopped.promise;
      await route.fulfill({ response });
      whenCreated.resolve();
    });
    await page.getByLabel('Code of the snippet').fill("console.log('it ran');");
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('The snippet was stopped.').waitFor();
    whenStopped.resolve();
    await whenCreated.promise;
    await page.getByRole('button', { name: 'Release' }).click();
    await page.getByText('The session has ended').waitFor();
    assert.equal(await page.locator('iframe[title="Snippet runner"]').count(), 0);
    assert.equal(await page.getByText('it ran', { exact: true }).count(), 0);
  }));

const REACH_SNIPPET = `
const tries = {
  origin: () => origin,
  cookie: () => document.cookie,
  storage: () => localStorage.length,
  console: () => parent.document.title,
  page: () => { parent.location = '${server.url}/healthz'; return 'moved'; },
  elsewhere: () => fetch('${pages.url}/').then(() => 'read'),
  api: () => fetch('${server.url}/v1/account').then(answer => answer.status),
  image: () => new Promise((resolve, reject) => Object.assign(new Image(), { onload: () => resolve('read'), onerror: () => reject(new Error('refused')), src: '${server.url}/console/mark.svg' })),
};
for (const [name, attempt] of Object.entries(tries))
  console.log(name + ': ' + (await Promise.resolve().then(attempt).catch(() => 'refused')));`;

test('a snippet cannot access the surrounding console, the API of the service or other sites', () =>
  visitPlayground(DESKTOP, async watched => {
    const { page } = watched;
    await page.getByLabel('Code of the snippet').fill(REACH_SNIPPET);
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('The snippet is done.').waitFor();
    const lines = await page.getByRole('log').getByRole('listitem').allTextContents();
    const refusedLines = ['cookie', 'storage', 'console', 'page', 'elsewhere', 'api', 'image'].map(
      name => `${name}: refused`,
    );
    assert.deepEqual(lines, ['origin: null', ...refusedLines]);
    // The browser logged each refusal to its console.
    assert.ok(watched.violations.splice(0).every(fault => /^(wrote|asked|threw)/.test(fault)));
    await page.getByRole('button', { name: 'Release' }).click();
    await page.getByText('The session has ended').waitFor();
  }));

test('of the console pages, only the snippet runner may evaluate code, and the snippet runner has an opaque origin', async () => {
  const policyOf = async (path: string): Promise<string> =>
    (await fetch(`${server.url}${path}`)).headers.get('content-security-policy') ?? '';
  const runnerPolicy = await policyOf('/console/runner/index.html');
  assert.match(runnerPolicy, /sandbox allow-scripts$/);
  assert.match(runnerPolicy, /script-src 'self' 'unsafe-eval';/);
  assert.match(runnerPolicy, /frame-ancestors 'self'/);
  for (const path of ['/console/', `/console/a/${server.applicationId}/playground`, '/console/runner'])
    assert.doesNotMatch(await policyOf(path), /unsafe/);
});

for (const look of [DESKTOP, DESKTOP_DARK, { ...DESKTOP, width: 1024 }, PHONE, PHONE_DARK])
  test(`the playground has no accessibility findings or overflow at ${look.width} pixels in the ${look.colours} theme`, () =>
    visitPlayground(look, async watched => {
      await watched.assertAccessible();
      await watched.page.getByRole('tab', { name: 'As JSON' }).click();
      await watched.assertAccessible();
    }));
