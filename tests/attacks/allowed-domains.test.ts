// A session with allowedDomains: no page and no client can navigate a main frame to another domain, and each attempt
// causes an event. Without the setting the same attempts succeed, which proves that the tests are effective. Other
// requests are unaffected. A networkPolicy for documents also applies to frames.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import type { ErrorBody } from '../../contract/common.ts';
import { CdpClient, type CdpMessage } from '../harness/cdp.ts';
import { openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { listEvents, waitForSessionEvent } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';

const landedHosts = new Set<string>();
const pages = await openPages({
  '/land': (request, response) => {
    landedHosts.add(String(request.headers.host).replace(/:.*/, ''));
    response.writeHead(200, { 'content-type': 'text/html', 'access-control-allow-origin': '*' });
    response.end('<!doctype html><title>Landed</title>');
  },
  '/go': (request, response) => {
    response.writeHead(302, { location: new URL(request.url ?? '', 'http://x').searchParams.get('to') ?? '/' });
    response.end();
  },
  '/refresh': (request, response) => {
    const to = new URL(request.url ?? '', 'http://x').searchParams.get('to');
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(`<!doctype html><meta http-equiv="refresh" content="0;url=${to}">`);
  },
});

interface Attempt {
  readonly client: CdpClient;
  /** The channel of a page on a.test. */
  readonly page: string;
  readonly pageTarget: string;
  /** The address that must not be reached. */
  readonly to: string;
}

const home = `${pages.a}/`;
const run = ({ client, page }: Attempt, expression: string): Promise<unknown> =>
  client.send('Runtime.evaluate', { expression, userGesture: true }, page);
const navigate = ({ client, page }: Attempt, url: string): Promise<unknown> =>
  client.ask('Page.navigate', { url }, page);

/** Intercepts the requests of the page with the given command, until the client is closed. */
async function intercept(
  { client, page }: Attempt,
  commandFor: (pausedRequestId: string, url: string) => [string, object],
): Promise<void> {
  await client.send('Fetch.enable', { patterns: [{ urlPattern: '*' }] }, page);
  client.onMessage((message: CdpMessage) => {
    if (message.method !== 'Fetch.requestPaused' || message.sessionId !== page) return;
    const [pausedRequestId, { url }] = [String(message.params?.requestId), Object(message.params?.request)];
    const [method, params] = commandFor(pausedRequestId, url);
    void client.ask(method, { requestId: pausedRequestId, ...params }, page);
  });
}

const ATTEMPTS: Readonly<Record<string, (attempt: Attempt) => Promise<unknown>>> = {
  'the page sets location': it => run(it, `location.href = '${it.to}'`),
  'the page replaces location': it => run(it, `location.replace('${it.to}')`),
  'a link is clicked': it => run(it, `Object.assign(document.createElement('a'), { href: '${it.to}' }).click()`),
  'a link opens a tab': it =>
    run(
      it,
      `Object.assign(document.createElement('a'), { href: '${it.to}', target: '_blank', rel: 'noopener' }).click()`,
    ),
  'a popup': it => run(it, `void open('${it.to}')`),
  'a popup without opener': it => run(it, `void open('${it.to}', '_blank', 'noopener,width=300')`),
  'a popup that moves later': it =>
    run(it, `void setTimeout(w => { w.location = '${it.to}' }, 50, open('about:blank'))`),
  'a form by GET': it => run(it, submitScript(it.to, 'get')),
  'a form by POST': it => run(it, submitScript(it.to, 'post')),
  'a form into a new tab': it => run(it, submitScript(it.to, 'post', '_blank')),
  'a meta refresh': it => navigate(it, `${pages.a}/refresh?to=${encodeURIComponent(it.to)}`),
  'a redirect': it => navigate(it, `${pages.a}/go?to=${encodeURIComponent(it.to)}`),
  'a redirect of a redirect': it =>
    navigate(it, `${pages.a}/go?to=${encodeURIComponent(`/go?to=${encodeURIComponent(it.to)}`)}`),
  'a javascript: address': it => run(it, `location.href = "javascript:void(location.href='${it.to}')"`),
  'a data: page': it => navigate(it, `data:text/html,<script>location.href='${it.to}'</script>`),
  'a blob: page': it =>
    run(
      it,
      `void open(URL.createObjectURL(new Blob(["<script>location.href='${it.to}'</script>"], { type: 'text/html' })))`,
    ),
  'a frame moves the top': it =>
    run(
      it,
      `{ const frame = document.createElement('iframe'); frame.srcdoc = "<a target=_top href='${it.to}'>x</a>";
         frame.onload = () => frame.contentDocument.querySelector('a').click(); document.body.append(frame) }`,
    ),
  'history goes forward to it': it => run(it, `history.pushState({}, '', '/next'); location.assign('${it.to}')`),
  'the client navigates': it => navigate(it, it.to),
  'the client opens a tab': it => it.client.ask('Target.createTarget', { url: it.to }),
  'the client opens a window': it => it.client.ask('Target.createTarget', { url: it.to, newWindow: true }),
  'the client opens a tab in the background': it =>
    it.client.ask('Target.createTarget', { url: it.to, background: true }),
  'the client opens a context of its own': async it => {
    const { browserContextId } = await it.client.send('Target.createBrowserContext');
    return it.client.ask('Target.createTarget', { url: it.to, browserContextId });
  },
  'the client leads an intercepted request there': async it => {
    await intercept(it, (_, url) => ['Fetch.continueRequest', url.endsWith('/swap') ? { url: it.to } : {}]);
    return navigate(it, `${pages.a}/swap`);
  },
  'the client answers with a redirect': async it => {
    await intercept(it, (_, url) =>
      url.endsWith('/swap')
        ? ['Fetch.fulfillRequest', { responseCode: 302, responseHeaders: [{ name: 'location', value: it.to }] }]
        : ['Fetch.continueRequest', {}],
    );
    return navigate(it, `${pages.a}/swap`);
  },
};

const submitScript = (to: string, method: string, target = ''): string =>
  `{ const form = document.createElement('form'); Object.assign(form, { action: '${to}', method: '${method}', target: '${target}' });
     document.body.append(form); form.submit() }`;

const frameScript = (source: string): string =>
  `{ const frame = document.createElement('iframe'); ${source}; document.body.append(frame) }`;

/** Ways to navigate a frame inside a page of a.test. */
const FRAME_ATTEMPTS: Readonly<Record<string, (attempt: Attempt) => Promise<unknown>>> = {
  'a frame': it => run(it, frameScript(`frame.src = '${it.to}'`)),
  'a frame by a redirect': it => run(it, frameScript(`frame.src = '/go?to=${encodeURIComponent(it.to)}'`)),
  'a frame by a meta refresh': it => run(it, frameScript(`frame.src = '/refresh?to=${encodeURIComponent(it.to)}'`)),
  'a frame that moves itself': it => run(it, frameScript(`frame.srcdoc = "<script>location = '${it.to}'</script>"`)),
  'a frame in a frame': it => run(it, frameScript(`frame.srcdoc = "<iframe src='${it.to}'></iframe>"`)),
  'a frame without an origin': it => run(it, frameScript(`frame.sandbox = 'allow-scripts'; frame.src = '${it.to}'`)),
  'a form into a frame': it =>
    run(it, `${frameScript(`frame.name = 'inner'`)}; ${submitScript(it.to, 'post', 'inner')}`),
  'an object': it =>
    run(it, `document.body.append(Object.assign(document.createElement('object'), { data: '${it.to}' }))`),
  'an embed': it =>
    run(
      it,
      `document.body.append(Object.assign(document.createElement('embed'), { src: '${it.to}', type: 'text/html' }))`,
    ),
};
const ALL_ATTEMPTS = { ...ATTEMPTS, ...FRAME_ATTEMPTS };

const OUTER_HOSTS = Object.keys(ATTEMPTS).map((_, index) => `x${index}.b.test`);
const HOSTS = Object.keys(ALL_ATTEMPTS).map((_, index) => `x${index}.b.test`);
const server = await startServer({
  env: {
    ...pages.settings,
    BERTH_EGRESS_HOSTS: ['a.test', 'www.a.test', 'b.test', ...HOSTS].map(name => `${name}=127.0.0.1`).join(),
    BERTH_WARM: '1',
  },
});
const landingUrl = (host: string): string => `http://${host}:${pages.port}/land`;

const createGuardedSession = (): Promise<CreatedSession> =>
  server.createSession({ keepAlive: true, browserSettings: { allowedDomains: ['A.test.'] } });

async function openPage(client: CdpClient): Promise<{ page: string; pageTarget: string }> {
  const { targetId } = await client.send('Target.createTarget', { url: home });
  const { sessionId } = await client.send('Target.attachToTarget', { targetId, flatten: true });
  const page = String(sessionId);
  await client.waitForValue('the page to be there', 'document.title', page, title => title === 'Home');
  return { page, pageTarget: String(targetId) };
}

/**
 * Makes these attempts. The client stays connected during the checks, because some attempts end when the client
 * disconnects.
 */
async function attemptAll<T>(session: CreatedSession, names: readonly string[], check: () => Promise<T>): Promise<T> {
  const client = await CdpClient.connect(session.connectUrl);
  for (const [index, [name, attempt]] of Object.entries(ALL_ATTEMPTS).entries()) {
    if (!names.includes(name)) continue;
    const openedPage = await openPage(client);
    await attempt({ client, ...openedPage, to: landingUrl(`x${index}.b.test`) });
  }
  const result = await check();
  await client.close();
  return result;
}

test('with allowedDomains, every navigation of a main frame to another domain is refused, and an event is recorded for each', async () => {
  const session = await createGuardedSession();
  landedHosts.clear();
  const names = Object.keys(ATTEMPTS);
  const refusedHosts = await attemptAll(session, names, () =>
    eventually(
      'an event for every refusal',
      async () =>
        new Set((await listEvents(server, session.id, 'navigation.refused')).map(({ detail }) => detail.hostname)),
      hosts => hosts.size >= OUTER_HOSTS.length,
    ),
  ).catch(error => {
    throw new Error(`${error.message} of ${names.join(', ')}`);
  });
  assert.deepEqual([...refusedHosts].sort(), [...OUTER_HOSTS].sort());
  assert.deepEqual(
    [...landedHosts].map(host => names[HOSTS.indexOf(host)]),
    [],
  );
  await server.release(session.id);
});

test('without allowedDomains, every way to navigate a page or a frame to another domain works', async () => {
  const session = await server.createSession({ keepAlive: true, recordSession: false });
  landedHosts.clear();
  const listMissingAttempts = (): Array<string | undefined> =>
    HOSTS.filter(host => !landedHosts.has(host)).map(host => Object.keys(ALL_ATTEMPTS)[HOSTS.indexOf(host)]);
  await attemptAll(session, Object.keys(ALL_ATTEMPTS), () =>
    eventually('a navigation by every way to arrive', listMissingAttempts, left => left.length === 0),
  );
  await server.release(session.id);
});

test('a networkPolicy with subresources: false applies to pages and their frames, and to no other requests', async () => {
  const networkPolicy = { default: 'deny', allow: ['a.test'], subresources: false };
  const session = await server.createSession({
    keepAlive: true,
    browserSettings: { networkPolicy },
  });
  const names = ['the client navigates', 'a popup', ...Object.keys(FRAME_ATTEMPTS)];
  const expectedHosts = HOSTS.filter((_, index) => names.includes(Object.keys(ALL_ATTEMPTS)[index] ?? '')).sort();
  landedHosts.clear();
  const refusalDetails = await attemptAll(session, names, () =>
    eventually(
      'an event for every refusal',
      async () => (await listEvents(server, session.id, 'network.refused')).map(({ detail }) => detail),
      details => new Set(details.map(({ hostname }) => hostname)).size >= expectedHosts.length,
    ),
  );
  assert.deepEqual([...new Set(refusalDetails.map(({ hostname }) => hostname))].sort(), expectedHosts);
  assert.deepEqual([...new Set(refusalDetails.map(({ rule }) => rule))], ['network_policy']);
  assert.deepEqual([...landedHosts], []);
  const client = await CdpClient.connect(session.connectUrl);
  const { page } = await openPage(client);
  const loadExpression = `Promise.all([fetch('${landingUrl('x0.b.test')}').then(answer => answer.status),
    new Promise(done => { const image = new Image(); image.onerror = done; image.src = '${landingUrl('x1.b.test')}' })])`;
  await client.send('Runtime.evaluate', { expression: loadExpression, awaitPromise: true }, page);
  assert.deepEqual([...landedHosts].sort(), ['x0.b.test', 'x1.b.test']);
  const { error } = await client.ask('Fetch.enable', { patterns: [{ urlPattern: '*' }] });
  assert.match(error?.message ?? '', /Fetch\.enable on the browser itself is refused/);
  await client.close();
  await server.release(session.id);
});

test('with allowedDomains, a client cannot enable request interception for the whole browser', async () => {
  const session = await createGuardedSession();
  const client = await CdpClient.connect(session.connectUrl);
  const { sessionId } = await client.send('Target.attachToBrowserTarget');
  for (const channel of [undefined, String(sessionId)]) {
    const { error } = await client.ask('Fetch.enable', { patterns: [{ urlPattern: '*' }] }, channel);
    assert.match(error?.message ?? '', /Fetch\.enable on the browser itself is refused/);
  }
  await client.close();
  await server.release(session.id);
});

test('if a client fakes a page at another domain, an empty page is shown instead', async () => {
  const session = await createGuardedSession();
  const client = await CdpClient.connect(session.connectUrl);
  const openedPage = await openPage(client);
  const to = landingUrl('b.test');
  const body = Buffer.from('<title>made up</title>').toString('base64');
  await intercept({ client, ...openedPage, to }, () => ['Fetch.fulfillRequest', { responseCode: 200, body }]);
  await client.ask('Page.navigate', { url: to }, openedPage.page);
  await client.waitForValue('the page to be empty', 'location.href', openedPage.page, at => at === 'about:blank');
  await waitForSessionEvent(server, session.id, 'navigation.refused', ({ hostname }) => hostname === 'b.test');
  await client.close();
  await server.release(session.id);
});

test('Playwright gets ERR_BLOCKED_BY_CLIENT for a refused navigation, and can still use routes, frames, fetches and subdomains', async () => {
  const session = await createGuardedSession();
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  const routedHosts: string[] = [];
  await page.route('**/*', route => {
    routedHosts.push(new URL(route.request().url()).hostname);
    return route.continue();
  });
  const refusedPage = await page.context().newPage();
  assert.match(String(await refusedPage.goto(landingUrl('b.test')).catch(String)), /net::ERR_BLOCKED_BY_CLIENT/);
  assert.equal((await page.goto(home.replace('a.test', 'www.a.test')))?.status(), 200);
  landedHosts.clear();
  const frameExpression = `new Promise(done => { const frame = document.createElement('iframe'); frame.onload = () => done(1); frame.src = '${landingUrl('x0.b.test')}'; document.body.append(frame) })`;
  await page.evaluate(frameExpression);
  assert.equal(await page.evaluate(url => fetch(url).then(reply => reply.status), landingUrl('x1.b.test')), 200);
  assert.deepEqual([...landedHosts].sort(), ['x0.b.test', 'x1.b.test']);
  assert.deepEqual([...new Set(routedHosts)].sort(), ['www.a.test', 'x0.b.test', 'x1.b.test']);
  for (const url of ['about:blank', 'data:text/html,<title>data</title>']) await page.goto(url);
  await browser.close();
  await server.release(session.id);
});

test('allowedDomains still applies after a restarted server has adopted the session', async () => {
  const session = await createGuardedSession();
  await server.restart();
  const client = await CdpClient.connect(session.connectUrl);
  const { page } = await openPage(client);
  landedHosts.clear();
  const { result } = await client.ask('Page.navigate', { url: landingUrl('b.test') }, page);
  assert.equal(result?.errorText, 'net::ERR_BLOCKED_BY_CLIENT');
  assert.equal(landedHosts.size, 0);
  await client.close();
  await server.release(session.id);
});

test('an invalid host name in allowedDomains is refused, and its position is reported', async () => {
  for (const entry of ['https://a.test', 'a.test:80', 'a.test/x', 'a*.test']) {
    const body = { allowedDomains: ['b.test', entry] };
    const refusal = await server.api<ErrorBody>('POST', '/v1/browsers/sessions', { body });
    assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request']);
    assert.match(refusal.body.message, /allowedDomains\.1 is /);
  }
});
