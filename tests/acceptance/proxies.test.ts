// Upstream proxies, tested with real proxy programs over HTTP, HTTPS and SOCKS5, with passwords. Requests of all kinds
// go through the proxy, including the first one. The proxy resolves names, and secrets are not revealed. Proxies that
// are down, misconfigured or slow cause specific errors.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { chromium, type Page } from 'playwright-core';
import type { ErrorBody } from '../../contract/common.ts';
import { claimFreePort } from '../harness/free-port.ts';
import { BIG_FILE_BYTES, openPages } from '../harness/pages.ts';
import { HIDDEN_HOST, openHttpProxy, openSocksProxy, PASSWORD, type RunningProxy, USER } from '../harness/proxies.ts';
import { createSelfSignedCert } from '../harness/self-signed.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { listEvents, waitForSessionEvent } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-proxies-'));
after(() => rmSync(folder, { recursive: true }));

const tls = createSelfSignedCert('127.0.0.1');
const untrustedTls = createSelfSignedCert('127.0.0.1');
const rootsFile = join(folder, 'roots.pem');
writeFileSync(rootsFile, tls.cert);

const serveScript = (source: string) => (_: unknown, response: import('node:http').ServerResponse) => {
  response.writeHead(200, { 'content-type': 'text/javascript' });
  response.end(source);
};
const pages = await openPages({
  '/worker.js': serveScript(`fetch('/next').then(answer => postMessage(answer.status))`),
  '/half': (_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': '1000' });
    response.write('half');
  },
});

const httpProxy = await openHttpProxy();
const httpsProxy = await openHttpProxy(tls);
const untrustedProxy = await openHttpProxy(untrustedTls);
const socksProxy = await openSocksProxy();
const closingProxy = await openHttpProxy();
/** A proxy whose requests a test can delay or abort. */
const stallingProxy = await openHttpProxy();
/** Accepts connections and never sends anything. */
const silentPort = await listenOnPort(createServer(() => {}));
/** A web server instead of a proxy, which refuses CONNECT. */
const webPort = await listenOnPort(
  createServer(socket => socket.end('HTTP/1.1 405 Method Not Allowed\r\n\r\n').on('error', () => {})),
);
/** Reads the request and closes the connection without a response. */
const closingPort = await listenOnPort(
  createServer(socket => socket.once('data', () => socket.end()).on('error', () => {})),
);
const unusedPort = await claimFreePort();

const poolsFile = join(folder, 'pools.json');
const poolProxy = { server: httpProxy.server, username: USER, password: PASSWORD };
writeFileSync(
  poolsFile,
  JSON.stringify({
    pools: [{ name: 'tokyo', country: 'JP', city: 'Tokyo', timeZone: 'Asia/Tokyo', proxies: [poolProxy] }],
  }),
);

const allowedPorts = [
  pages.port,
  httpProxy.port,
  httpsProxy.port,
  untrustedProxy.port,
  socksProxy.port,
  closingProxy.port,
  stallingProxy.port,
  silentPort,
  webPort,
  closingPort,
  unusedPort,
];
const server = await startServer({
  pages,
  env: {
    BERTH_EGRESS_ALLOW: allowedPorts.map(port => `127.0.0.1/32:${port}`).join(),
    BERTH_PROXY_POOLS: poolsFile,
    NODE_EXTRA_CA_CERTS: rootsFile,
  },
});
const hiddenUrl = `http://${HIDDEN_HOST}:${pages.port}`;

/** The host name that is requested through an HTTP proxy to check the proxy. */
const PROBED_HOST = 'berth-probe.invalid';
/**
 * A host that is requested through the proxy at the start of this file and never responds. Other tests run during the
 * wait.
 */
const SILENT_HOST = 'never.test';
/** The timeout of the request to `SILENT_HOST`: longer than the session's limit for tunnels, which must apply first. */
const NAVIGATION_MAX_MS = 120_000;

async function listenOnPort(server: Server): Promise<number> {
  const port = await claimFreePort();
  server.listen(port, '127.0.0.1');
  after(() => server.close());
  return port;
}

const externalRule = (proxy: Pick<RunningProxy, 'server'>, more: object = {}): object => ({
  type: 'external',
  server: proxy.server,
  username: USER,
  password: PASSWORD,
  ...more,
});

async function withSession(
  proxies: unknown,
  use: (page: Page, session: CreatedSession) => Promise<void>,
  more: object = {},
): Promise<void> {
  const session = await server.createSession({ keepAlive: true, proxies, ...more });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  try {
    await use(page, session);
  } finally {
    await browser.close();
    await server.release(session.id);
  }
}

stallingProxy.holdBack([SILENT_HOST]);
const stalledSession = await server.createSession({ keepAlive: true, proxies: [externalRule(stallingProxy)] });
const stalledBrowser = await chromium.connectOverCDP(stalledSession.connectUrl);
const stalledPage = stalledBrowser.contexts()[0]?.pages()[0];
// A rejection is converted to a string, so that Node does not report the rejection as unhandled.
const stalledNavigation = stalledPage
  ?.goto(`https://${SILENT_HOST}/`, { timeout: NAVIGATION_MAX_MS })
  .then(() => 'it was there', String);

/** Maps each session to the value of its `proxyBytes` while the session was running. */
const bytesBySession = new Map<string, number>();

/** Sends requests of every kind: pages, fetches, a worker, a WebSocket, a large body and a download. */
async function sendEveryKindOfRequest(page: Page): Promise<void> {
  assert.equal((await page.goto(hiddenUrl))?.status(), 200);
  assert.equal(await page.evaluate(() => fetch('/next').then(reply => reply.status)), 200);
  const workerScript = `new Promise(done => { new Worker('/worker.js').onmessage = event => done(event.data) })`;
  assert.equal(await page.evaluate(workerScript), 200);
  const big = `fetch('/big').then(answer => answer.arrayBuffer()).then(body => body.byteLength)`;
  assert.equal(await page.evaluate(big), BIG_FILE_BYTES);
  await page.goto(`${hiddenUrl}/socket`);
  await page.waitForFunction(`document.title === 'HELLO'`);
  await page.goto(`${hiddenUrl}/download-page`);
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('#get')]);
  assert.equal(await download.failure(), null);
}

for (const [name, proxy] of [
  ['HTTP', httpProxy],
  ['HTTPS', httpsProxy],
  ['SOCKS5', socksProxy],
] as const)
  test(`all kinds of requests go through the ${name} proxy, which resolves the host name`, () =>
    withSession([externalRule(proxy)], async (page, { id }) => {
      await sendEveryKindOfRequest(page);
      const runningSession = await server.read(id);
      assert.ok(runningSession.proxyBytes > BIG_FILE_BYTES, String(runningSession.proxyBytes));
      bytesBySession.set(id, runningSession.proxyBytes);
    }));

test('an ended session reports the number of bytes sent through its proxies', async () => {
  assert.equal(bytesBySession.size, 3);
  for (const [id, bytes] of bytesBySession) assert.ok((await server.read(id)).proxyBytes >= bytes, id);
});

test('HTTP and HTTPS proxies receive absolute URLs for plain requests and CONNECT for tunnels', () => {
  for (const { requests: asked } of [httpProxy, httpsProxy]) {
    assert.ok(asked.includes(`http ${HIDDEN_HOST}:${pages.port}`), asked.join());
    assert.ok(asked.includes(`connect ${HIDDEN_HOST}:${pages.port}`), asked.join());
  }
});

test('a session applies the first matching proxy rule, and connects directly if no rule matches the host name', () =>
  withSession(
    [
      { type: 'none', domainPattern: '^a\\.test$' },
      externalRule(httpsProxy, { domainPattern: '(a|b)\\.TEST$' }),
      externalRule(httpProxy, { domainPattern: `^${HIDDEN_HOST.replace('.', '\\.')}$` }),
    ],
    async page => {
      const [before, beforeTls] = [httpProxy.requests.length, httpsProxy.requests.length];
      assert.equal((await page.goto(`${pages.a}/next`))?.status(), 200);
      assert.deepEqual([httpProxy.requests.length, httpsProxy.requests.length], [before, beforeTls]);
      // The session resolves b.test with its static host names, but the proxy cannot resolve the name.
      assert.notEqual((await page.goto(`${pages.b}/next`))?.status(), 200);
      assert.match(httpsProxy.requests.slice(beforeTls).join(), /^http b\.test:/);
      assert.equal((await page.goto(`${hiddenUrl}/next`))?.status(), 200);
      assert.equal((await page.goto(`${pages.url}/next`))?.status(), 200);
      assert.deepEqual([...new Set(httpProxy.requests.slice(before))], [`http ${HIDDEN_HOST}:${pages.port}`]);
    },
  ));

test('requests to forbidden addresses are refused and do not reach a proxy', () =>
  withSession([externalRule(httpProxy)], async (page, { id }) => {
    const countBefore = httpProxy.requests.length;
    for (const host of [
      '169.254.169.254',
      '10.1.2.3',
      '[::1]',
      'metadata.google.internal',
      '2130706433',
      'x.localhost',
    ])
      assert.equal((await page.goto(`http://${host}/`))?.status(), 403, host);
    assert.equal(httpProxy.requests.length, countBefore);
    await waitForSessionEvent(server, id, 'network.refused', ({ rule }) => rule === 'metadata');
  }));

test("a session uses the operator's proxy pool for the requested location, and has the time zone of the pool", async () => {
  const rule = { type: 'browserbase', geolocation: { country: 'jp', city: 'TOKYO' } };
  for (const proxies of [true, [rule]])
    await withSession(proxies, async page => {
      assert.equal((await page.goto(hiddenUrl))?.status(), 200);
      assert.equal(await page.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone), 'Asia/Tokyo');
    });
  await withSession(
    true,
    async page => {
      assert.equal(await page.evaluate(() => Intl.DateTimeFormat().resolvedOptions().timeZone), 'Europe/Berlin');
    },
    { browserSettings: { timezoneId: 'Europe/Berlin' } },
  );
  for (const geolocation of [{ country: 'DE' }, { country: 'JP', city: 'Osaka' }, { country: 'JP', state: 'TK' }]) {
    const { status, body } = await create([{ type: 'browserbase', geolocation }]);
    assert.deepEqual([status, body.code, body.details], [422, 'feature_unavailable', { field: 'proxies.0' }]);
  }
});

const create = (proxies: unknown) => server.api<ErrorBody>('POST', '/v1/browsers/sessions', { body: { proxies } });

const at = (port: number, scheme = 'http'): { server: string } => ({ server: `${scheme}://127.0.0.1:${port}` });

const UNUSABLE_PROXIES = [
  ['proxy_unreachable', externalRule(at(unusedPort))],
  ['proxy_unreachable', externalRule(at(unusedPort, 'socks5'))],
  ['proxy_unreachable', externalRule({ server: 'http://unknown.invalid:3128' })],
  ['proxy_unreachable', externalRule(at(closingPort))],
  ['proxy_unreachable', externalRule(at(closingPort, 'socks5'))],
  ['proxy_timed_out', externalRule(at(silentPort))],
  ['proxy_timed_out', externalRule(at(silentPort, 'https'))],
  ['proxy_timed_out', externalRule(at(silentPort, 'socks5'))],
  ['not_a_proxy', externalRule(at(webPort))],
  ['proxy_not_trusted', externalRule(untrustedProxy)],
  ['proxy_refused_user', externalRule(httpProxy, { password: 'hush-wrong' })],
  ['proxy_refused_user', externalRule(socksProxy, { password: 'hush-wrong' })],
  ['proxy_refused_user', { type: 'external', server: httpProxy.server }],
  ['proxy_refused_user', { type: 'external', server: socksProxy.server }],
  ['address_refused', externalRule({ server: 'http://169.254.169.254:3128' })],
  ['address_refused', externalRule({ server: 'http://10.0.0.1:3128' })],
] as const;

/**
 * The time limit for the refusal of an unusable proxy. The probe of a proxy ends after eight seconds, whereas a
 * connection attempt of the kernel would take minutes. The difference is a margin for a busy machine.
 */
const REFUSAL_MAX_MS = 100_000;

test('a create with an unusable proxy is refused within two minutes, and the error identifies the proxy', async () => {
  await Promise.all(
    UNUSABLE_PROXIES.map(async ([reason, rule]) => {
      const startMs = Date.now();
      const { status, body, text } = await create([{ type: 'none', domainPattern: 'x' }, rule]);
      assert.deepEqual([status, body.code], [400, 'proxy_unreachable'], text);
      const advice =
        reason === 'address_refused'
          ? /Use another proxy, or ask the operator to allow the address/
          : /Check the address, user name and password of the proxy/;
      assert.match(body.message, advice);
      assert.deepEqual(body.details, { path: 'proxies.1', reason });
      assert.doesNotMatch(text, /hush|169\.254|someone/);
      assert.ok(Date.now() - startMs < REFUSAL_MAX_MS, `${reason} took ${Date.now() - startMs} ms`);
    }),
  );
  await server.waitUntilSettled([stalledSession.id]);
});

test('invalid proxy rules are refused, and the error contains the path of the rule', async () => {
  for (const [path, rule] of [
    ['proxies.0.domainPattern', { type: 'none', domainPattern: '(a' }],
    ['proxies.0.domainPattern', { type: 'none', domainPattern: '(?=a)b' }],
    ['proxies.0.domainPattern', { type: 'none', domainPattern: '(\\S?){1000}' }],
    ['proxies.0.server', { type: 'external', server: 'http://user:hush@proxy.test:1' }],
    ['proxies.0.server', { type: 'external', server: 'http://proxy.test:1/path' }],
    ['proxies.0.server', { type: 'external', server: 'http://proxy.test:99999' }],
    ['proxies[0].server', { type: 'external', server: 'ftp://proxy.test' }],
  ] as const) {
    const { status, body, text } = await create([rule]);
    assert.deepEqual([status, body.code], [400, 'invalid_request'], text);
    assert.ok(text.includes(path), text);
    assert.doesNotMatch(text, /hush/);
  }
});

test('a domainPattern that would take exponential time with backtracking does not stall requests', () =>
  withSession([externalRule(httpProxy, { domainPattern: '^(([a-z])+.)+[A-Z]([a-z])+$' })], async page => {
    assert.notEqual((await page.goto(`http://${'a'.repeat(60)}.test:${pages.port}/`))?.status(), 200);
  }));

test('when a proxy fails, pages get a network error, an event is recorded, and the session continues', () =>
  withSession([externalRule(closingProxy)], async (page, { id }) => {
    assert.equal((await page.goto(hiddenUrl))?.status(), 200);
    await closingProxy.close();
    assert.match(String(await page.goto(`https://${HIDDEN_HOST}/`).catch(String)), /ERR_TUNNEL_CONNECTION_FAILED/);
    const otherPage = await page.context().newPage();
    assert.match(String(await otherPage.goto(hiddenUrl).catch(String)), /net::ERR_CONNECTION_RESET/);
    const hitsBefore = pages.hits('/next');
    assert.match(String(await otherPage.goto(`${pages.a}/next`).catch(String)), /net::ERR_/);
    assert.equal(pages.hits('/next'), hitsBefore, 'no request bypasses a failed proxy');
    const [failedEvent] = await waitForSessionEvent(server, id, 'proxy.failed');
    assert.deepEqual([failedEvent?.detail.proxy, failedEvent?.detail.reason], ['proxies.0', 'proxy_unreachable']);
    assert.equal((await server.read(id)).status, 'RUNNING');
  }));

test('creating a session, loading a page and opening a tunnel each wait for a slow proxy', async () => {
  stallingProxy.holdBack([PROBED_HOST, HIDDEN_HOST, SILENT_HOST]);
  const countProbes = (): number =>
    stallingProxy.requests.filter(asked => asked === `connect ${PROBED_HOST}:443`).length;
  const probesBefore = countProbes();
  const pendingSession = server.createSession({ keepAlive: true, proxies: [externalRule(stallingProxy)] });
  await eventually('the proxy to be probed', () => countProbes() > probesBefore);
  stallingProxy.holdBack([HIDDEN_HOST, SILENT_HOST]);
  const { id, connectUrl } = await pendingSession;
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  const pendingVisit = page.goto(hiddenUrl);
  await eventually('the page to be asked for', () =>
    stallingProxy.requests.includes(`http ${HIDDEN_HOST}:${pages.port}`),
  );
  stallingProxy.holdBack([SILENT_HOST]);
  assert.equal((await pendingVisit)?.status(), 200);
  stallingProxy.holdBack([HIDDEN_HOST, SILENT_HOST]);
  const tunnelMessage = page.evaluate(`new Promise(done => {
    const socket = new WebSocket('ws://' + location.host + '/ws');
    socket.onopen = () => socket.send('hello');
    socket.onmessage = ({ data }) => done(data);
    socket.onerror = () => done('failed');
  })`);
  await eventually('a tunnel to be asked for', () =>
    stallingProxy.requests.includes(`connect ${HIDDEN_HOST}:${pages.port}`),
  );
  stallingProxy.holdBack([SILENT_HOST]);
  assert.equal(await tunnelMessage, 'HELLO');
  assert.deepEqual(await listEvents(server, id, 'proxy.failed'), []);
  await browser.close();
  await server.release(id);
});

test('when a proxy never responds for one host name, only the request to that host fails and the session continues', async () => {
  assert.match(String(await stalledNavigation), /ERR_TUNNEL_CONNECTION_FAILED/);
  const [failedEvent] = await waitForSessionEvent(server, stalledSession.id, 'proxy.failed');
  assert.deepEqual([failedEvent?.detail.proxy, failedEvent?.detail.reason], ['proxies.0', 'proxy_timed_out']);
  assert.equal((await stalledPage?.goto(hiddenUrl))?.status(), 200);
  assert.equal((await server.read(stalledSession.id)).status, 'RUNNING');
  await stalledBrowser.close();
  await server.release(stalledSession.id);
});

test('when a proxy aborts a response body, the request of the page fails but the session continues', () =>
  withSession([externalRule(stallingProxy)], async (page, { id }) => {
    await page.goto(hiddenUrl);
    pages.set('/endless', (_, response) => {
      response.writeHead(200, { 'content-length': String(1024 ** 3) });
      response.write(Buffer.alloc(1024 ** 2));
      response.on('error', () => {});
    });
    await page.evaluate(`void fetch('/endless').then(answer => {
      document.title = 'begun';
      return answer.arrayBuffer();
    }).then(() => 'whole', String).then(text => { document.title = text })`);
    await page.waitForFunction(`document.title === 'begun'`);
    stallingProxy.dropConnections();
    await page.waitForFunction(`document.title !== 'begun'`);
    assert.match(await page.title(), /TypeError/);
    assert.equal((await page.goto(hiddenUrl))?.status(), 200);
    assert.equal((await server.read(id)).status, 'RUNNING');
  }));

test('when the web server aborts a response body, the request of the page fails but the session continues', () =>
  withSession([externalRule(socksProxy)], async page => {
    await page.goto(hiddenUrl);
    pages.set('/half', (_, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('half', () => response.destroy());
    });
    const half = `fetch('/half').then(answer => answer.text()).then(() => 'whole', String)`;
    assert.match(String(await page.evaluate(half)), /TypeError/);
    assert.equal((await page.goto(hiddenUrl))?.status(), 200);
  }));

test('a session continues to use its proxies after the server restarts, and no secret is stored or shown in plain text', async () => {
  const session = await server.createSession({ keepAlive: true, proxies: [externalRule(httpProxy)] });
  await server.restart();
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.equal((await page?.goto(hiddenUrl))?.status(), 200);
  const { proxyBytes } = await server.read(session.id);
  await server.restart('SIGTERM');
  assert.ok(proxyBytes > 0 && (await server.read(session.id)).proxyBytes >= proxyBytes);

  const secrets = [USER, PASSWORD, Buffer.from(`${USER}:${PASSWORD}`).toString('base64')];
  const visibleTexts = [
    ...server.log(),
    JSON.stringify(await server.read(session.id)),
    JSON.stringify(await listEvents(server, session.id)),
    ...listCommandLines(),
  ];
  for (const secret of secrets)
    assert.deepEqual(
      visibleTexts.filter(line => line.includes(secret)),
      [],
    );
  assert.deepEqual(findFilesWith(PASSWORD), []);
  assert.ok(findFilesWith(session.id).length > 0);
  await server.release(session.id);
});

/**
 * Returns the files in the server's data folder that contain the string: database files, the database log, and files in
 * session folders.
 */
function findFilesWith(text: string): readonly string[] {
  const { stdout } = spawnSync('grep', ['-rlaF', '--devices=skip', '-e', text, server.dataDir], { encoding: 'utf8' });
  return stdout.split('\n').filter(line => line !== '');
}

/** The command lines of all processes except the test's own proxy. */
const listCommandLines = (): string[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8')];
      } catch {
        return [];
      }
    })
    .filter(line => !line.includes('microsocks'));
