// DevTools on a page of a session. Chromium's own front end runs in a second browser and inspects a jailed page that
// the agent keeps using. Also tests the refusals of the DevTools socket.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';
import type { DebugUrls } from '../../contract/live.ts';
import { CdpClient, expectUpgradeRefusal } from '../harness/cdp.ts';
import { DESKTOP, ensureConsoleBuilt, findConsoleLink, openWatchedPage, visitSessions } from '../harness/console.ts';
import { TEST_ENGINE } from '../harness/engine.ts';
import { sendRequest } from '../harness/http.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { listEvents } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';

const FRAMED_PAGE =
  '<!doctype html><title>Framed</title><p>outside</p><iframe src="http://b.test:PORT/inner"></iframe>';
const pages = await openPages({
  '/known': `<!doctype html><title>Known</title><h1>A known heading</h1><script>console.log('a known message')</script>`,
  '/inner': '<!doctype html><title>Inner</title><p>inside</p>',
});
pages.set('/framed', FRAMED_PAGE.replace('PORT', String(pages.port)));
await ensureConsoleBuilt();
const server = await startServer({ pages });

interface DevtoolsFixture {
  readonly session: CreatedSession;
  readonly page: Page;
  readonly link: string;
  readonly end: () => Promise<void>;
}

const agentBrowsers: Browser[] = [];
after(() => Promise.all(agentBrowsers.map(agent => agent.close())));

async function openSessionWithDevtools(path = '/known', settings: object = {}): Promise<DevtoolsFixture> {
  const session = await server.createSession({ keepAlive: true, browserSettings: settings });
  const agent = await chromium.connectOverCDP(session.connectUrl);
  agentBrowsers.push(agent);
  const page = agent.contexts()[0]?.pages()[0];
  assert.ok(page);
  await page.goto(pages.a + path);
  const link = (await linksOf(session.id)).pages[0]?.devtoolsUrl;
  assert.ok(link);
  return { session, page, link, end: async () => void (await server.release(session.id)) };
}

async function linksOf(id: string, query = ''): Promise<DebugUrls> {
  const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug${query}`);
  return body;
}

/** Returns the WebSocket address that the front end uses. */
function socketOf(link: string): string {
  const url = new URL(link.replace(/^http/, 'ws'));
  url.pathname += '/socket';
  return url.href;
}

test('the Elements and Console panels of DevTools show a page of a session while its agent continues to work', async () => {
  const { session, page, link, end } = await openSessionWithDevtools();
  const watched = await openWatchedPage(DESKTOP, server.url);
  const { page: view } = watched;
  await view.goto(link);
  await view.getByText('A known heading').first().waitFor();
  await page.evaluate("document.querySelector('h1').textContent = 'A heading of the agent'");
  await view.getByText('A heading of the agent').first().waitFor();

  await view.getByRole('tab', { name: 'Console' }).first().click();
  await view.getByText('a known message').first().waitFor();
  await view.getByRole('textbox', { name: 'Console prompt' }).focus();
  await view.keyboard.type('document.title = 6 * 7 + " is the answer"');
  await view.keyboard.press('Enter');
  await eventually('the page to run the expression', async () => (await page.title()) === '42 is the answer');
  await view.getByText("'42 is the answer'").first().waitFor();

  await view.close();
  await page.goto(`${pages.a}/next`);
  assert.equal(await page.textContent('h1'), 'Next');
  const told = await eventually(
    'the events of the DevTools connection',
    async () => (await listEvents(server, session.id)).filter(({ type }) => type.startsWith('devtools.')),
    events => events.length === 2,
  );
  assert.deepEqual(
    told.map(({ type }) => type),
    ['devtools.opened', 'devtools.closed'],
  );
  const violations = watched.violations.filter(
    fault => TEST_ENGINE === 'chromium' || !fault.includes('Request Autofill.'),
  );
  assert.deepEqual(violations, [], 'no request to other hosts and no violation of the content security policy');
  await watched.close();
  await end();
});

test('the live view links to DevTools for viewers who may take control', async () => {
  const { session, end } = await openSessionWithDevtools();
  const watched = await openWatchedPage(DESKTOP, server.url);
  const { debuggerUrl } = await linksOf(session.id);
  await watched.page.goto(debuggerUrl);
  const link = watched.page.getByRole('link', { name: 'DevTools' });
  const href = await link.getAttribute('href');
  assert.equal((await sendRequest(String(href), {})).status, 302);
  assert.equal(await link.getAttribute('rel'), 'noopener noreferrer');
  await watched.page.goto(`${debuggerUrl}&readOnly=true`);
  await watched.page.getByRole('button', { name: 'Known' }).waitFor();
  assert.equal(await link.isVisible(), false);
  assert.deepEqual(watched.violations, []);
  await watched.close();
  await end();
});

test('the live tab of the console opens DevTools with one click', () =>
  visitSessions(server, findConsoleLink(server), DESKTOP, async ({ page: consolePage }) => {
    const { session, end } = await openSessionWithDevtools();
    await consolePage.getByRole('link', { name: session.id }).click();
    const whenOpened = consolePage.waitForEvent('popup');
    const view = consolePage.frameLocator('iframe[title="Live view of the session"]');
    await view.getByRole('link', { name: 'DevTools' }).click();
    const devtools = await whenOpened;
    await devtools.getByRole('tree', { name: 'Page DOM' }).getByText('A known heading').first().waitFor();
    await devtools.close();
    await end();
  }));

test('the DevTools files can be cached forever, and their content security policy allows only these files and the socket', async () => {
  const { link, end } = await openSessionWithDevtools();
  const redirectResponse = await sendRequest(link, {});
  assert.equal(redirectResponse.status, 302);
  const location = String(redirectResponse.headers.location);
  const frontResponse = await sendRequest(server.url + location, {});
  assert.equal(frontResponse.status, 200);
  assert.match(String(frontResponse.headers['cache-control']), /immutable/);
  const policy = String(frontResponse.headers['content-security-policy']);
  const filesUrl = `${server.url}/devtools/`;
  assert.deepEqual(policy.split('; '), [
    "default-src 'none'",
    `script-src ${filesUrl}`,
    `style-src ${filesUrl} 'unsafe-inline'`,
    `img-src ${filesUrl} data: blob:`,
    `font-src ${filesUrl}`,
    `connect-src ${filesUrl} ${server.url.replace('http:', 'ws:')}/v1/browsers/live/ data:`,
    `worker-src ${filesUrl}`,
    ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  ]);
  const folder = location.slice(0, location.lastIndexOf('/'));
  for (const path of [`${folder}/..%2f..%2fhost-id`, `${folder}/nothing.js`, '/devtools/..%2f/secret', '/devtools//'])
    assert.equal((await sendRequest(server.url + path, {})).status, 404, path);
  await end();
});

test('DevTools cannot be opened with a view-only, altered or revoked address', async () => {
  const { session, link, end } = await openSessionWithDevtools();
  const viewLinks = await linksOf(session.id, '?readOnly=true');
  const view = viewLinks.pages[0];
  assert.equal(view?.devtoolsUrl, undefined);
  const urlWithViewToken = new URL(link);
  urlWithViewToken.searchParams.set('token', new URL(view?.debuggerUrl ?? '').searchParams.get('token') ?? '');
  const alteredUrl = new URL(link);
  alteredUrl.searchParams.set('token', `${alteredUrl.searchParams.get('token')?.slice(0, -3)}abc`);
  const unknownPageUrl = new URL(link);
  unknownPageUrl.searchParams.set('page', 'F'.repeat(32));
  for (const url of [urlWithViewToken.href, alteredUrl.href, unknownPageUrl.href]) {
    assert.equal((await sendRequest(url, {})).status, 403, url);
    assert.equal((await expectUpgradeRefusal(socketOf(url))).status, 403);
  }
  const client = await CdpClient.connect(socketOf(link));
  await server.api('DELETE', `/v1/browsers/sessions/${session.id}/debug`);
  assert.deepEqual(await client.waitForClose(), { code: 1000, reason: 'the address was revoked' });
  assert.equal((await sendRequest(link, {})).status, 403);
  const token = new URL(link).searchParams.get('token') ?? '';
  assert.ok(!server.log().some(line => line.includes(token)), 'a token is never logged');
  await end();
});

test('the DevTools socket gives access only to its page and the frames of the page', async () => {
  const { session, page, link, end } = await openSessionWithDevtools('/framed');
  const otherPage = await page.context().newPage();
  await otherPage.goto(`${pages.a}/next`);
  const targetId = (await linksOf(session.id)).pages.find(({ url }) => url.endsWith('/next'))?.id;
  assert.ok(targetId);
  const agent = await CdpClient.connect(session.connectUrl);
  const foreignChannel = await agent.attachToPage();
  const devtools = await CdpClient.connect(socketOf(link));

  const autoAttachOptions = {
    autoAttach: true,
    waitForDebuggerOnStart: true,
    flatten: true,
    filter: [{ type: 'page' }, {}],
  };
  await devtools.send('Target.setAutoAttach', autoAttachOptions);
  const attachedEvent = await devtools.waitForEvent('Target.attachedToTarget');
  assert.equal(await devtools.evaluate('document.body.innerText', String(attachedEvent.params?.sessionId)), 'inside');
  await devtools.send('Runtime.evaluate', { expression: "open('/next')", userGesture: true });

  for (const [method, params] of [
    ['Target.attachToTarget', { targetId, flatten: true }],
    ['Target.getTargetInfo', { targetId }],
    ['Target.getTargets', {}],
    ['Target.attachToBrowserTarget', {}],
    ['Target.createTarget', { url: 'about:blank' }],
    ['Target.closeTarget', { targetId }],
    ['Target.autoAttachRelated', { targetId, waitForDebuggerOnStart: false }],
    ['Browser.close', {}],
    ['Browser.getVersion', {}],
    ['Tracing.start', {}],
    ['DOM.setFileInputFiles', { files: ['/etc/passwd'] }],
    ['Page.navigate', { url: 'file:///etc/passwd' }],
  ] as const)
    assert.match((await devtools.ask(method, params)).error?.message ?? '', /refused/, method);
  const escapedResponse = await devtools.askRaw(
    id => `{"id":${id},"method":"\\u0054arget.attachToTarget","params":{"targetId":"${targetId}","flatten":true}}`,
  );
  assert.match(escapedResponse.error?.message ?? '', /refused/);
  const foreignChannelResponse = await devtools.ask('Runtime.evaluate', { expression: '1' }, foreignChannel);
  assert.equal(foreignChannelResponse.error?.code, -32001, 'the channel of another client cannot be used');
  await eventually('the popup', () => page.context().pages().length === 3);
  const types = devtools.events
    .filter(({ method }) => method === 'Target.attachedToTarget')
    .map(({ params }) => Object(params?.targetInfo).type);
  assert.deepEqual(types, ['iframe'], 'neither the other page nor the popup');
  assert.ok(!JSON.stringify(devtools.events).includes(targetId));
  await devtools.close();
  await agent.close();
  await end();
});

test('the overrides of the agent are restored when DevTools clears its own overrides, and a paused page continues when DevTools is closed', async () => {
  const { page, link, end } = await openSessionWithDevtools();
  await page.setViewportSize({ width: 640, height: 480 });
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  const look = "[innerWidth, matchMedia('print').matches, matchMedia('(prefers-color-scheme: dark)').matches]";
  const readSettings = (): Promise<unknown> => page.evaluate(look);
  const agentSettings = [640, true, true];
  await eventually(
    'the settings of the agent',
    async () => JSON.stringify(await readSettings()) === JSON.stringify(agentSettings),
  );

  const devtools = await CdpClient.connect(socketOf(link));
  await devtools.send('Emulation.setEmulatedMedia', {
    media: '',
    features: [{ name: 'prefers-color-scheme', value: '' }],
  });
  assert.deepEqual(await readSettings(), agentSettings, 'the front end does not reset the settings of the agent');
  await devtools.send('Emulation.setDeviceMetricsOverride', {
    width: 300,
    height: 300,
    deviceScaleFactor: 1,
    mobile: false,
  });
  await eventually('the size that DevTools has set', async () =>
    JSON.stringify(await readSettings()).startsWith('[300'),
  );
  await devtools.send('Emulation.clearDeviceMetricsOverride');
  await eventually(
    'the size of the agent',
    async () => JSON.stringify(await readSettings()) === JSON.stringify(agentSettings),
  );

  await devtools.send('Emulation.setDeviceMetricsOverride', {
    width: 300,
    height: 300,
    deviceScaleFactor: 1,
    mobile: false,
  });
  await devtools.send('Debugger.enable');
  const pausedEvaluation = page.evaluate('(() => { debugger; return 1 })()');
  await devtools.waitForEvent('Debugger.paused');
  await devtools.close();
  assert.equal(await pausedEvaluation, 1);
  await eventually(
    'the old settings',
    async () => JSON.stringify(await readSettings()) === JSON.stringify(agentSettings),
  );
  await end();
});

test('DevTools commands are refused while a viewer has control, and DevTools is notified when the page or session ends', async () => {
  const { session, page, link, end } = await openSessionWithDevtools('/known', { takeover: 'refuse' });
  const links = await linksOf(session.id);
  const viewer = await LiveViewer.open(links.debuggerUrl);
  await viewer.takeControl();
  const devtools = await CdpClient.connect(socketOf(link));
  const reload = await devtools.ask('Page.reload');
  assert.match(reload.error?.message ?? '', /a person controls this session/);
  await viewer.giveControl();
  await devtools.send('Page.reload');
  await viewer.close();

  const otherPage = await page.context().newPage();
  const otherPageLink = (await linksOf(session.id)).pages.find(({ url }) => url === 'about:blank')?.devtoolsUrl ?? '';
  const otherDevtools = await CdpClient.connect(socketOf(otherPageLink));
  await otherDevtools.send('Runtime.enable');
  await otherPage.close();
  // Chromium itself also reports `Inspector.detached`, with another reason.
  await otherDevtools.waitForEvent('Inspector.detached', ({ params }) => params?.reason === 'the page was closed');
  assert.equal((await otherDevtools.waitForClose()).code, 1000);

  // A link whose token is valid for all pages opens the page that the link names.
  const all = new URL(link);
  all.searchParams.set('token', new URL(links.debuggerUrl).searchParams.get('token') ?? '');
  const secondClient = await CdpClient.connect(socketOf(all.href));
  await secondClient.send('Runtime.enable');
  await end();
  for (const one of [devtools, secondClient]) {
    await one.waitForEvent('Inspector.detached', ({ params }) => /session ended/.test(String(params?.reason)));
    assert.match((await one.waitForClose()).reason, /session ended/);
  }
});
