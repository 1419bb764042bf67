// Operations that agents call: discovery, grants, the built-in operations at a URL and in a session, invocations and
// their files, idempotency, waiting and cancellation.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import type { AgentOperationList, Invocation, InvocationPage } from '../../contract/invocations.ts';
import { liftLimits } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { openPages } from '../harness/pages.ts';
import { pdfText } from '../harness/pdf-text.ts';
import { decodePng } from '../harness/png.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const ARTICLE = 'Berth gives each agent a browser of its own, on your own machines. '.repeat(10);
const pages = await openPages({
  '/red': '<!doctype html><title>Red</title><body style="background:#ff0000;margin:0;height:2000px">',
  '/article': `<!doctype html><title>News</title><nav><a href="/red">Menu entry</a></nav><article><h2>One</h2><p>${ARTICLE}</p><p>Read <a href="/red">more</a>.</p></article>`,
  '/shop':
    '<!doctype html><title>Shop</title><h1>Lamp</h1><b class="price">12 €</b><ul><li>red<li>blue</ul><img src="/x.png" alt="A lamp">',
  '/missing': (_, response) => void response.writeHead(404, { 'content-type': 'text/html' }).end('<title>No</title>'),
  '/slow': (_, response) => void setTimeout(() => response.end('<!doctype html><title>Slow</title>'), 4_000),
  '/alert': '<!doctype html><title>Alert</title><script>alert("hello")</script>',
});
const server = await startServer({ pages, env: { BERTH_SLOTS: '6' } });
await liftLimits(server);
const { id: keyId, key } = await issueAgentKey(server);

async function invokeSuccessfully(operationId: string, input: object): Promise<Invocation> {
  const { status, body, text } = await invoke(server, key, operationId, input);
  assert.equal(status, 200, text);
  assert.equal(body.status, 'succeeded', text);
  return body;
}

interface Artifact {
  readonly downloadUrl: string;
  readonly mimeType: string;
  readonly size: number;
  readonly checksum: string;
}

const artifactOf = ({ output }: Invocation): Artifact => Object(output).artifact;

async function fetchBytes(invocation: Invocation): Promise<Buffer> {
  const { downloadUrl, mimeType, size, checksum } = artifactOf(invocation);
  const response = await fetch(downloadUrl);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), mimeType);
  const bytes = Buffer.from(await response.arrayBuffer());
  assert.equal(bytes.length, size);
  assert.equal(createHash('sha256').update(bytes).digest('hex'), checksum);
  return bytes;
}

const read = async (id: string): Promise<Invocation> =>
  (await server.api<Invocation>('GET', agentPath(server, `invocations/${id}`), { key })).body;

test('an agent can list the granted operations with their schemas', async () => {
  const { status, body, text } = await server.api<AgentOperationList>('GET', agentPath(server, 'operations'), { key });
  assert.equal(status, 200, text);
  const ids = body.data.map(({ id }) => id);
  assert.deepEqual(ids, [
    'browser.content',
    'browser.download',
    'browser.extract',
    'browser.pdf',
    'browser.screenshot',
    'memory.get',
  ]);
  for (const { inputSchema, outputSchema, digest, effect, revision } of body.data) {
    assert.equal(inputSchema.type, 'object');
    assert.equal(outputSchema.type, 'object');
    assert.match(digest, /^sha256:[0-9a-f]{64}$/);
    assert.deepEqual([effect, revision], ['read', 1]);
  }
});

test('an agent cannot list, read or call operations that are not granted', async () => {
  const one = await issueAgentKey(server, { grants: [{ operationId: 'browser.pdf' }] });
  const { body } = await server.api<AgentOperationList>('GET', agentPath(server, 'operations'), { key: one.key });
  assert.deepEqual(
    body.data.map(({ id }) => id),
    ['browser.pdf'],
  );
  const path = agentPath(server, 'operations/browser.screenshot');
  assert.equal((await server.api('GET', path, { key: one.key })).status, 404);
  assert.equal((await server.api('GET', path, { key })).status, 200);
  const refusal = await invoke(server, one.key, 'browser.screenshot', { url: `${pages.url}/red` });
  assert.deepEqual([refusal.status, refusal.body.code], [403, 'operation_not_granted']);
});

test('browser.screenshot opens an address in a new session, captures the page, and releases the session', async () => {
  const screenshot = await invokeSuccessfully('browser.screenshot', {
    url: `${pages.url}/red`,
    viewport: { width: 640, height: 400 },
  });
  const { output, sessionId = '', cost, attempts } = screenshot;
  assert.deepEqual(Object(output).url, `${pages.url}/red`);
  assert.deepEqual(
    [Object(output).title, Object(output).status, Object(output).width, Object(output).height],
    ['Red', 200, 640, 400],
  );
  const png = decodePng(await fetchBytes(screenshot));
  assert.equal(png.colourAt(320, 200), '#ff0000');
  assert.equal(attempts, 1);
  assert.ok(cost.meters.browserSeconds > 0 && cost.meters.browserSeconds < 60);
  const session = await server.waitUntilEnded(sessionId);
  assert.deepEqual([session.endReason, session.userMetadata], ['released', { invocationId: screenshot.id }]);
});

test('browser.screenshot can capture the whole page or an element, and can return a JPEG', async () => {
  const wholeScreenshot = await invokeSuccessfully('browser.screenshot', {
    url: `${pages.url}/red`,
    fullPage: true,
    format: 'jpeg',
    quality: 50,
  });
  assert.equal(Object(wholeScreenshot.output).height, 2000);
  assert.equal((await fetchBytes(wholeScreenshot)).subarray(0, 2).toString('hex'), 'ffd8');
  const elementScreenshot = await invokeSuccessfully('browser.screenshot', {
    url: `${pages.url}/shop`,
    selector: 'h1',
  });
  assert.ok(Object(elementScreenshot.output).height < 100);
});

test('browser.pdf returns a PDF and its number of pages', async () => {
  const pdfInvocation = await invokeSuccessfully('browser.pdf', { url: `${pages.url}/red`, paper: 'A5' });
  assert.ok(Object(pdfInvocation.output).pages >= 2);
  const articleInvocation = await invokeSuccessfully('browser.pdf', { url: `${pages.url}/article` });
  const bytes = await fetchBytes(articleInvocation);
  assert.equal(bytes.subarray(0, 5).toString(), '%PDF-');
  assert.ok(pdfText(bytes).includes('Berth gives each agent a browser'), 'its text can be read');
});

test('browser.content returns the content as Markdown, text, HTML or links', async () => {
  const url = `${pages.url}/article`;
  const markdown = Object((await invokeSuccessfully('browser.content', { url })).output).content;
  assert.match(markdown, /^# News\n/);
  assert.match(markdown, /Read \[more\]\(http/);
  assert.doesNotMatch(markdown, /Menu entry/);
  const text = Object((await invokeSuccessfully('browser.content', { url, as: 'text' })).output).content;
  assert.match(text, /Menu entry/);
  assert.doesNotMatch(text, /<p>/);
  const html = Object(
    (await invokeSuccessfully('browser.content', { url, as: 'html', selector: 'nav' })).output,
  ).content;
  assert.match(html, /^<nav><a href/);
  const links = Object((await invokeSuccessfully('browser.content', { url, as: 'links' })).output);
  assert.deepEqual([links.content, links.truncated], [`${pages.url}/red`, false]);
  const cut = Object((await invokeSuccessfully('browser.content', { url, as: 'text', maxBytes: 10 })).output);
  assert.deepEqual([Buffer.byteLength(cut.content) <= 10, cut.truncated], [true, true]);
});

test('browser.extract returns values by selector', async () => {
  const { output } = await invokeSuccessfully('browser.extract', {
    url: `${pages.url}/shop`,
    fields: {
      price: { selector: '.price' },
      colours: { selector: 'li', all: true },
      picture: { selector: 'img', attribute: 'alt' },
      nothing: { selector: '.none' },
    },
  });
  const fields = { price: '12 €', colours: ['red', 'blue'], picture: 'A lamp', nothing: null };
  assert.deepEqual(Object(output).fields, fields);
});

test('operations can use the page of a running session, and the session keeps running', async () => {
  const drivingKey = await issueAgentKey(server, {
    scopes: ['operations:invoke', 'browsers:connect', 'browsers:write', 'browsers:read'],
  });
  const session = (
    await server.api<{ id: string; connectUrl: string }>('POST', '/v1/browsers/sessions', {
      key: drivingKey.key,
      body: { keepAlive: true },
    })
  ).body;
  const browser = await chromium.connectOverCDP(session.connectUrl);
  await browser.contexts()[0]?.pages()[0]?.goto(`${pages.url}/shop`);
  const { body, text } = await invoke(server, drivingKey.key, 'browser.extract', {
    sessionId: session.id,
    fields: { name: { selector: 'h1' } },
  });
  assert.equal(body.status, 'succeeded', text);
  assert.deepEqual([Object(body.output).fields, body.sessionId], [{ name: 'Lamp' }, session.id]);
  const invokeInSession = async (operation: string, more: object = {}): Promise<Invocation> => {
    const invocationResponse = await invoke(server, drivingKey.key, operation, { sessionId: session.id, ...more });
    assert.equal(invocationResponse.body.status, 'succeeded', invocationResponse.text);
    return invocationResponse.body;
  };
  const png = decodePng(await fetchBytes(await invokeInSession('browser.screenshot', { selector: 'h1' })));
  assert.ok(png.width > png.height, 'of the heading');
  assert.ok(pdfText(await fetchBytes(await invokeInSession('browser.pdf'))).includes('Lamp'));
  assert.match(Object((await invokeInSession('browser.content', { as: 'text' })).output).content, /Lamp/);
  assert.equal((await server.read(session.id)).status, 'RUNNING');
  await browser.close();
  const refusal = await invoke(server, key, 'browser.content', { sessionId: session.id });
  assert.deepEqual([refusal.status, refusal.body.code], [403, 'permission_denied']);
  await server.api('POST', `/v1/browsers/sessions/${session.id}`, {
    key: drivingKey.key,
    body: { status: 'REQUEST_RELEASE' },
  });
  await server.waitUntilEnded(session.id);
  const endedSessionRefusal = await invoke(server, drivingKey.key, 'browser.content', { sessionId: session.id });
  assert.deepEqual([endedSessionRefusal.status, endedSessionRefusal.body.code], [409, 'session_not_running']);
});

test('an error page, an unreachable host and a page that does not become ready in time are reported as failures', async () => {
  const missingPageInvocation = (await invoke(server, key, 'browser.screenshot', { url: `${pages.url}/missing` })).body;
  assert.deepEqual(
    [missingPageInvocation.status, missingPageInvocation.error?.code, missingPageInvocation.error?.details],
    ['failed', 'page_failed', { pageStatus: 404, url: `${pages.url}/missing` }],
  );
  assert.equal(
    (await invokeSuccessfully('browser.screenshot', { url: `${pages.url}/missing`, acceptStatus: [404] })).status,
    'succeeded',
  );
  const unreachableInvocation = (await invoke(server, key, 'browser.content', { url: 'http://127.0.0.1:1/' })).body;
  assert.deepEqual(
    [unreachableInvocation.status, unreachableInvocation.error?.code, unreachableInvocation.error?.phase],
    ['failed', 'page_failed', 'during'],
  );
  const slowInvocation = (
    await invoke(server, key, 'browser.content', { url: `${pages.url}/shop`, waitUntil: '.never', timeoutMs: 1000 })
  ).body;
  assert.deepEqual([slowInvocation.status, slowInvocation.error?.code], ['failed', 'timeout']);
  for (const { receipt, sessionId = '' } of [missingPageInvocation, unreachableInvocation, slowInvocation]) {
    assert.ok(receipt);
    await server.waitUntilEnded(sessionId);
  }
});

test('a dialog that a page opens during an invocation is dismissed, and the invocation succeeds', async () => {
  assert.equal(
    Object((await invokeSuccessfully('browser.content', { url: `${pages.url}/alert`, as: 'html' })).output).title,
    'Alert',
  );
});

test('invalid input, input outside the grant and a wrong revision are refused without starting an invocation', async () => {
  const cases: ReadonlyArray<readonly [input: object, status: number, code: string]> = [
    [{}, 400, 'invalid_request'],
    [{ url: 'ftp://example.com/' }, 400, 'invalid_request'],
    [{ url: `${pages.url}/red`, sessionId: keyId }, 400, 'invalid_request'],
    [{ url: `${pages.url}/red`, fullpage: true }, 400, 'invalid_request'],
    [{ url: `${pages.url}/red`, quality: 101 }, 400, 'invalid_request'],
    [{ url: `${pages.url}/red`, contextId: keyId }, 400, 'unknown_context'],
  ];
  const metadata = { note: 'x'.repeat(1024) };
  const metadataRefusal = await invoke(
    server,
    key,
    'browser.screenshot',
    { url: `${pages.url}/red` },
    { extraFields: { metadata } },
  );
  assert.deepEqual([metadataRefusal.status, metadataRefusal.body.code], [400, 'invalid_request'], metadataRefusal.text);
  const countBefore = await countInvocations(key);
  for (const [input, status, code] of cases) {
    const refusal = await invoke(server, key, 'browser.screenshot', input);
    assert.deepEqual([refusal.status, refusal.body.code], [status, code], refusal.text);
  }
  const input = { type: 'object', properties: { url: { pattern: `^${pages.url}/` } } };
  const narrowKey = await issueAgentKey(server, { grants: [{ operationId: 'browser.screenshot', input }] });
  const grantRefusal = await invoke(server, narrowKey.key, 'browser.screenshot', { url: 'http://127.0.0.1:1/' });
  assert.deepEqual([grantRefusal.status, grantRefusal.body.code], [403, 'input_not_granted']);
  assert.equal((await invoke(server, narrowKey.key, 'browser.screenshot', { url: `${pages.url}/red` })).status, 200);
  const revisionConflict = await invoke(
    server,
    key,
    'browser.screenshot',
    { url: `${pages.url}/red` },
    { extraFields: { revision: 7 } },
  );
  assert.deepEqual([revisionConflict.status, revisionConflict.body.code], [409, 'revision_conflict']);
  assert.equal(await countInvocations(key), countBefore);
});

const countInvocations = async (by: string): Promise<number> =>
  (await server.api<InvocationPage>('GET', agentPath(server, 'invocations?limit=100'), { key: by })).body.data.length;

test('the daily call limit is enforced, including for concurrent calls', async () => {
  const limitedKey = await issueAgentKey(server, { grants: [{ operationId: 'browser.content', maxCallsPerDay: 2 }] });
  const calls = Array.from({ length: 5 }, () =>
    invoke(server, limitedKey.key, 'browser.content', { url: `${pages.url}/shop` }),
  );
  const statuses = (await Promise.all(calls)).map(({ status }) => status).sort();
  assert.deepEqual(statuses, [200, 200, 429, 429, 429]);
  const { body } = await server.api<AgentOperationList>('GET', agentPath(server, 'operations'), {
    key: limitedKey.key,
  });
  assert.equal(body.data[0]?.grant.remainingCallsToday, 0);
});

test('calls with the same idempotency key start one invocation, and a different request with the same key is refused', async () => {
  const headers = { 'idempotency-key': 'order 1' };
  const url = `${pages.url}/shop`;
  const hitsBefore = pages.hits('/shop');
  const calls = Array.from({ length: 20 }, () => invoke(server, key, 'browser.content', { url }, { headers }));
  const responses = await Promise.all(calls);
  assert.equal(new Set(responses.map(({ body }) => body.id)).size, 1);
  assert.equal(responses.filter(({ headers: given }) => given['idempotency-replayed'] === 'true').length, 19);
  assert.equal(pages.hits('/shop') - hitsBefore, 1);
  const conflictResponse = await invoke(server, key, 'browser.content', { url, as: 'text' }, { headers });
  assert.deepEqual([conflictResponse.status, conflictResponse.body.code], [409, 'idempotency_conflict']);
  // A refused request does not use up its idempotency key.
  const secondHeaders = { 'idempotency-key': 'order 2' };
  assert.equal(
    (await invoke(server, key, 'browser.content', { url, contextId: keyId }, { headers: secondHeaders })).status,
    400,
  );
  assert.equal((await invoke(server, key, 'browser.content', { url }, { headers: secondHeaders })).status, 200);
});

test('a call returns 202 if the caller does not wait, and a later read can wait for the end of the invocation', async () => {
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`member${at}`, '']));
  const metadata = { note: 'x'.repeat(600), ...many };
  const startResponse = await invoke(
    server,
    key,
    'browser.content',
    { url: `${pages.url}/slow` },
    { headers: { prefer: 'respond-async' }, extraFields: { metadata } },
  );
  assert.equal(startResponse.status, 202, startResponse.text);
  assert.deepEqual(startResponse.body.metadata, metadata);
  assert.deepEqual([startResponse.body.status, startResponse.body.receipt], ['running', undefined]);
  const location = String(startResponse.headers.location);
  assert.equal(location, agentPath(server, `invocations/${startResponse.body.id}`));
  const runningInvocation = (await server.api<Invocation>('GET', `${location}?wait=55&since=failed`, { key })).body;
  assert.equal(runningInvocation.status, 'running', 'it differs from the status that the caller knows');
  const endedInvocation = (await server.api<Invocation>('GET', `${location}?wait=55&since=running`, { key })).body;
  assert.deepEqual([endedInvocation.status, Object(endedInvocation.output).title], ['succeeded', 'Slow']);
});

test('a running invocation can be cancelled, and cancelling an ended invocation is refused', async () => {
  const { id, sessionId = '' } = (
    await invoke(server, key, 'browser.content', { url: `${pages.url}/slow` }, { headers: { prefer: 'wait=0' } })
  ).body;
  const path = agentPath(server, `invocations/${id}/cancel`);
  const cancelledInvocation = (await server.api<Invocation>('POST', path, { key })).body;
  assert.deepEqual([cancelledInvocation.status, cancelledInvocation.error?.code], ['failed', 'cancelled']);
  await server.waitUntilEnded(sessionId);
  assert.equal((await server.api('POST', path, { key })).status, 409);
});

test('an agent can list only the invocations of its key, filtered by operation, status and time', async () => {
  const { body } = await server.api<InvocationPage>(
    'GET',
    agentPath(server, 'invocations?status=failed&operationId=browser.screenshot'),
    { key },
  );
  assert.ok(body.data.length > 0);
  assert.ok(body.data.every(({ status, operationId }) => status === 'failed' && operationId === 'browser.screenshot'));
  const listFailed = async (query = '') => {
    const path = agentPath(server, `invocations?status=failed${query}`);
    return (await server.api<InvocationPage>('GET', path, { key })).body.data.map(({ id, createdAt }) => [
      id,
      createdAt,
    ]);
  };
  const [last = assert.fail(), before] = await listFailed();
  assert.ok(before && before[1] !== last[1]);
  assert.deepEqual(await listFailed(`&after=${last[1]}`), [last]);
  const otherKey = await issueAgentKey(server);
  const emptyListResponse = await server.api<InvocationPage>('GET', agentPath(server, 'invocations'), {
    key: otherKey.key,
  });
  assert.deepEqual(emptyListResponse.body.data, []);
  const [first] = body.data;
  assert.equal(
    (await server.api('GET', agentPath(server, `invocations/${first?.id}`), { key: otherKey.key })).status,
    404,
  );
  const foreignPath = agentPath(server, 'invocations').replace(server.applicationId, keyId);
  assert.equal((await server.api('GET', foreignPath, { key })).status, 404);
});

test('the output of an invocation is removed after 31 days, and the receipt is kept', async () => {
  const testClockServer = await startServer({ pages, clock: 'test', env: { BERTH_SLOTS: '2' } });
  const ownKey = await issueAgentKey(testClockServer, { expiresAt: undefined });
  const {
    id,
    output,
    sessionId = '',
  } = (await invoke(testClockServer, ownKey.key, 'browser.screenshot', { url: `${pages.url}/red` })).body;
  const { downloadUrl } = Object(output).artifact;
  assert.equal((await fetch(downloadUrl)).status, 200);
  await testClockServer.waitUntilEnded(sessionId);
  await testClockServer.advance(32 * 24 * 3_600_000);
  const oldInvocation = await eventually(
    'the output to be removed',
    async () =>
      (
        await testClockServer.api<Invocation>('GET', agentPath(testClockServer, `invocations/${id}`), {
          key: ownKey.key,
        })
      ).body,
    ({ output: left }) => left === undefined,
  );
  assert.ok(oldInvocation.receipt);
  assert.equal(oldInvocation.status, 'succeeded');
});

test('reading an invocation returns a working download link', async () => {
  const { id } = await invokeSuccessfully('browser.screenshot', { url: `${pages.url}/red` });
  assert.equal((await fetch(artifactOf(await read(id)).downloadUrl)).status, 200);
});
