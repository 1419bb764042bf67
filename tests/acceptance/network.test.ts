// The network rules of a session: host rules, ad blocking and a byte budget. All rules apply from the first byte, in
// warm and new browsers, and after an adoption.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type Browser, chromium, type Page } from 'playwright-core';
import type { ErrorBody } from '../../contract/common.ts';
import { claimFreePort } from '../harness/free-port.ts';
import { BIG_FILE_BYTES, openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { listEvents, waitForSessionEvent } from '../harness/session-events.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-network-'));
after(() => rmSync(folder, { recursive: true }));
const listFile = join(folder, 'ads.txt');
writeFileSync(listFile, '! a list\n0.0.0.0 ads.b.test\n||b.test^\n@@||good.b.test^\n');

const pages = await openPages({ '/plain': '<!doctype html><title>Plain</title>' });
const unusedPort = await claimFreePort();
const resettingPort = await startFailingHost(socket => socket.resetAndDestroy());
const closingPort = await startFailingHost(socket => socket.end());
const nonsensePort = await startFailingHost(socket => socket.end('HTTP/1.1 20 NO\r\n\r\n'));
const allowedPorts = [pages.port, unusedPort, resettingPort, closingPort, nonsensePort];
const server = await startServer({
  env: {
    BERTH_EGRESS_ALLOW: allowedPorts.map(port => `127.0.0.1/32:${port}`).join(),
    BERTH_EGRESS_HOSTS: ['a', 'www.a', 'b', 'ads.b', 'good.b', 'xn--bcher-kva']
      .map(name => `${name}.test=127.0.0.1`)
      .join(),
    BERTH_ADBLOCK_LIST: listFile,
    BERTH_WARM: '1',
  },
});
/** The requests received by hosts that fail in different ways. */
const receivedRequests: string[] = [];
async function startFailingHost(fail: (socket: Socket) => void): Promise<number> {
  const port = await claimFreePort();
  const host = createServer(socket => {
    socket.on('error', () => {});
    socket.once('data', head => {
      receivedRequests.push(String(head).split(' ', 2).join(' '));
      fail(socket);
    });
  });
  host.listen(port, '127.0.0.1');
  after(() => host.close());
  return port;
}

const urlAt = (host: string, path = '/plain'): string => `http://${host}:${pages.port}${path}`;

async function drive(session: CreatedSession, use: (page: Page, browser: Browser) => Promise<void>): Promise<void> {
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  await use(page, browser);
  await browser.close();
}

async function withSession(
  body: object,
  use: (page: Page, session: CreatedSession, browser: Browser) => Promise<void>,
): Promise<void> {
  const session = await server.createSession({ keepAlive: true, ...body });
  await drive(session, (page, browser) => use(page, session, browser));
  await server.release(session.id);
}

const readStatus = async (page: Page, url: string): Promise<number | undefined> =>
  page.goto(url).then(
    result => result?.status(),
    () => undefined,
  );

const policyBody = (networkPolicy: object): object => ({ browserSettings: { networkPolicy } });

test('a networkPolicy that denies by default allows only the listed host names and their subdomains', () =>
  withSession(policyBody({ default: 'deny', allow: ['*.A.test.', 'bücher.test'] }), async (page, { id }) => {
    for (const host of ['a.test', 'www.a.test', 'xn--bcher-kva.test'])
      assert.equal(await readStatus(page, urlAt(host)), 200);
    const hitsBefore = pages.hits('/plain');
    for (const host of ['b.test', '127.0.0.1', 'nota.test'])
      assert.equal(await readStatus(page, urlAt(host)), 403, host);
    assert.equal(
      await page.evaluate(url => fetch(url).catch(String), urlAt('b.test')).then(String),
      'TypeError: Failed to fetch',
    );
    assert.equal(pages.hits('/plain'), hitsBefore);
    for (const [host, minTotal] of [
      ['127.0.0.1', 1],
      ['nota.test', 1],
      ['b.test', 2],
    ] as const)
      await waitForSessionEvent(
        server,
        id,
        'network.refused',
        ({ hostname, total }) => hostname === host && Number(total) >= minTotal,
      );
    const told = await listEvents(server, id, 'network.refused');
    assert.deepEqual([...new Set(told.map(({ detail }) => `${detail.hostname} ${detail.rule}`))].sort(), [
      '127.0.0.1 network_policy',
      'b.test network_policy',
      'nota.test network_policy',
    ]);
    assert.deepEqual(told[0]?.actor, { kind: 'browser' });
  }));

test('a networkPolicy that allows by default refuses the listed host names, and the longest matching entry applies', () =>
  withSession(policyBody({ deny: ['a.test'], allow: ['www.a.test'] }), async page => {
    assert.deepEqual(
      [
        await readStatus(page, urlAt('a.test')),
        await readStatus(page, urlAt('www.a.test')),
        await readStatus(page, urlAt('b.test')),
      ],
      [403, 200, 200],
    );
  }));

test('a networkPolicy still applies after the server restarts', async () => {
  const session = await server.createSession({
    keepAlive: true,
    ...policyBody({ default: 'deny', allow: ['a.test'] }),
  });
  await server.restart();
  await drive(session, async page => {
    assert.deepEqual([await readStatus(page, urlAt('a.test')), await readStatus(page, urlAt('b.test'))], [200, 403]);
  });
  await server.release(session.id);
});

test('host names of advertisers are blocked if blockAds is set', () =>
  withSession({ browserSettings: { blockAds: true } }, async (page, { id }) => {
    const seen = [];
    for (const host of ['a.test', 'b.test', 'ads.b.test', 'good.b.test'])
      seen.push(await readStatus(page, urlAt(host)));
    assert.deepEqual(seen, [200, 403, 403, 200]);
    await waitForSessionEvent(
      server,
      id,
      'network.refused',
      ({ hostname, rule }) => hostname === 'b.test' && rule === 'ad',
    );
  }));

test('a plain HTTP request that fails causes a network error in the page, and is not repeated', () =>
  withSession({}, async (page, _session, browser) => {
    const ends = /net::ERR_(EMPTY_RESPONSE|CONNECTION_CLOSED)/;
    assert.equal(await readStatus(page, urlAt('a.test')), 200);
    // Tests each failure on a new connection to the proxy and on a reused one, on which Chromium would repeat the
    // request.
    for (const [port, error] of [
      [unusedPort, /net::ERR_CONNECTION_RESET/],
      [resettingPort, /net::ERR_CONNECTION_RESET/],
      [closingPort, ends],
      [nonsensePort, /net::ERR_INVALID_HTTP_RESPONSE/],
    ] as const)
      for (const pathsBefore of [[], ['/plain', '/next']]) {
        for (const path of pathsBefore) await page.evaluate(path => fetch(path).then(reply => reply.text()), path);
        receivedRequests.length = 0;
        const url = `http://a.test:${port}/page`;
        const failingPage = await browser.contexts()[0]?.newPage();
        assert.ok(failingPage);
        const [request, navigationOutcome] = await Promise.all([
          failingPage.waitForEvent('requestfailed', request => request.url() === url),
          failingPage.goto(url).then(reply => `status ${reply?.status()}`, String),
        ]);
        assert.match(navigationOutcome, error);
        assert.match(String(request.failure()?.errorText), error);
        assert.equal(await request.response(), null);
        await failingPage.close();
        assert.deepEqual(receivedRequests, port === unusedPort ? [] : ['GET /page'], String(error));
        receivedRequests.length = 0;
        for (const path of pathsBefore) await page.evaluate(path => fetch(path).then(reply => reply.text()), path);
        const post = (to: string) => fetch(to, { method: 'POST', body: 'x', mode: 'no-cors' }).then(String, String);
        assert.equal(await page.evaluate(post, url), 'TypeError: Failed to fetch');
        assert.deepEqual(receivedRequests, port === unusedPort ? [] : ['POST /page'], String(error));
      }
  }));

test('a host that cannot be reached is reported as an event with the reason', () =>
  withSession({}, async (page, { id }) => {
    const goto = (url: string): Promise<unknown> => page.goto(url).catch(() => {});
    await goto(`https://a.test:${unusedPort}/`);
    await goto(`http://b.test:${nonsensePort}/`);
    await goto('https://unknown.invalid/');
    for (const [hostname, why] of [
      ['a.test', /^connect_failed$/],
      ['b.test', /^bad_answer$/],
      ['unknown.invalid', /^name_(not_resolved|timed_out)$/],
    ] as const)
      await waitForSessionEvent(
        server,
        id,
        'network.failed',
        detail => detail.hostname === hostname && why.test(String(detail.reason)) && Number(detail.total) >= 1,
      );
  }));

test('for a plain HTTP request, Playwright reports the headers that the web server receives', () =>
  withSession({}, async page => {
    const reply = await page.goto(urlAt('a.test', '/echo'));
    const echoedRequest: { headers: Record<string, string> } = await reply?.json();
    assert.equal(echoedRequest.headers.connection, 'keep-alive');
    assert.deepEqual(await reply?.request().allHeaders(), echoedRequest.headers);
  }));

test('a networkPolicy with an entry that is not a host name is refused, and the error names the entry', async () => {
  const networkPolicy = { allow: ['a.test', 'https://a.test'], deny: ['a*.test'] };
  const { status, body } = await server.api<ErrorBody>('POST', '/v1/browsers/sessions', {
    body: { browserSettings: { networkPolicy } },
  });
  assert.deepEqual([status, body.code], [400, 'invalid_request']);
  assert.match(body.message, /browserSettings\.networkPolicy\.allow\.1 is "https:\/\/a\.test"; expected a host name/);
});

test('a session that has used up its byte budget ends with egress_limit', async () => {
  const budgetBytes = BIG_FILE_BYTES / 2;
  const session = await server.createSession({ keepAlive: true, browserSettings: { egressBytes: budgetBytes } });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.equal(await page?.goto(urlAt('a.test')).then(reply => reply?.status()), 200);
  void page
    ?.evaluate(
      async url => {
        for (;;) await fetch(url).then(reply => reply.arrayBuffer());
      },
      urlAt('a.test', '/big'),
    )
    .catch(() => {});
  const endedSession = await server.waitUntilEnded(session.id);
  assert.deepEqual([endedSession.status, endedSession.endReason], ['ERROR', 'egress_limit']);
  const [decided] = await waitForSessionEvent(server, session.id, 'session.end_decided');
  assert.match(String(decided?.detail.detail), /used up its egressBytes \(4194304\)/);
});
