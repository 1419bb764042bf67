// The operation `browser.steps`: steps at a URL and in a running session, their results, failed steps, refusals, and a
// server that is killed while steps are running.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import type { Static } from 'typebox';
import type { AgentOperationList, Invocation } from '../../contract/invocations.ts';
import type { Artifact } from '../../contract/managed-operations.ts';
import { liftLimits } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { openPages } from '../harness/pages.ts';
import { decodePng } from '../harness/png.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const FORM = `<!doctype html><title>Form</title>
  <form action="/done"><input id="name" name="name" value="old"><select id="size" name="size"><option value="s">Small<option value="l">Large</select>
  <button id="ask" type="button" onclick="confirm('sure?')">Ask</button><button id="send">Send</button></form>
  <p id="over" onmouseover="this.textContent='hovered'">not hovered</p><div style="height:3000px"></div><p id="end">the end</p>`;
const pages = await openPages({
  '/form': FORM,
  '/done': (request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://pages.test');
    const text = `${searchParams.get('name')?.replaceAll('<', '&lt;')} ${searchParams.get('size')}`;
    response.end(
      `<!doctype html><title>Done</title><body style="margin:0;background:#00ff00"><p>${text}</p><script src="/shown.js"></script>`,
    );
  },
  '/shown.js': (_, response) => void response.writeHead(200, { 'content-type': 'text/javascript' }).end(''),
  '/files': `<!doctype html><title>Files</title><input id="files" type="file" multiple><ul></ul><p></p><script>
    document.querySelector('#files').onchange = async ({ target }) => {
      for (const file of target.files) {
        const bytes = [...new Uint8Array(await file.arrayBuffer())].map(byte => byte.toString(16).padStart(2, '0'));
        document.querySelector('ul').append(Object.assign(document.createElement('li'), { textContent: file.name + ' ' + file.type + ' ' + bytes.join('') }));
      }
      document.querySelector('p').textContent = 'done';
    };</script>`,
  '/missing': (_, response) => void response.writeHead(404, { 'content-type': 'text/html' }).end('<title>No</title>'),
});
const server = await startServer({ pages, env: { BERTH_SLOTS: '4' } });
await liftLimits(server);
const grants = [{ operationId: 'browser.steps' }];
const { key } = await issueAgentKey(server, { grants });
let callCount = 0;

type Steps = readonly object[];
type StoredFile = Static<typeof Artifact>;

const bytesOf = async ({ downloadUrl, size, checksum }: StoredFile): Promise<Buffer> => {
  const bytes = Buffer.from(await (await fetch(downloadUrl)).arrayBuffer());
  assert.deepEqual([bytes.length, createHash('sha256').update(bytes).digest('hex')], [size, checksum]);
  return bytes;
};

/** Calls `browser.steps` with a new idempotency key. */
const runSteps = (input: object, all: Steps, options: { key?: string; prefer?: string } = {}) => {
  callCount += 1;
  const headers = { 'idempotency-key': `call ${callCount}`, ...(options.prefer ? { prefer: options.prefer } : {}) };
  return invoke(server, options.key ?? key, 'browser.steps', { ...input, steps: all }, { headers });
};
const url = `${pages.url}/form`;

test('browser.steps fills in a form, submits the form and reads the response in a session that is then released', async () => {
  const { status, body, text } = await runSteps({ url, viewport: { width: 800, height: 600 } }, [
    { do: 'hover', selector: '#over' },
    { do: 'content', selector: '#over' },
    { do: 'scroll', selector: '#end' },
    { do: 'fill', selector: '#name', value: 'Ada "Lovelace" <b>' },
    { do: 'select', selector: '#size', values: ['l'] },
    { do: 'click', selector: '#ask' },
    { do: 'click', selector: '#send' },
    { do: 'waitFor', selector: 'text=Lovelace' },
    { do: 'content', selector: 'p', maxBytes: 3 },
    { do: 'extract', fields: { all: { selector: 'p', all: true }, none: { selector: 'h1' } } },
    { do: 'screenshot' },
    { do: 'goto', url },
    { do: 'press', selector: '#name', key: 'End' },
    { do: 'press', key: '!' },
    { do: 'press', key: 'Enter' },
    { do: 'waitFor', selector: 'text=old! s' },
    { do: 'sleep', ms: 1 },
  ]);
  assert.deepEqual([status, body.status], [200, 'succeeded'], text);
  const { results, artifacts, title, status: pageStatus } = Object(body.output);
  assert.deepEqual([title, pageStatus], ['Done', 200]);
  assert.equal(results.length, 17);
  assert.deepEqual(results[1], { do: 'content', content: 'hovered', truncated: false });
  assert.deepEqual(results[8], { do: 'content', content: 'Ada', truncated: true });
  assert.deepEqual(results[9], { do: 'extract', fields: { all: ['Ada "Lovelace" <b> l'], none: null } });
  assert.deepEqual(results[16], { do: 'sleep' });
  assert.deepEqual([results[10], artifacts.length], [{ do: 'screenshot', artifact: 0, width: 800, height: 600 }, 1]);
  const picture = decodePng(await bytesOf(artifacts[0]));
  assert.deepEqual([picture.width, picture.height], [800, 600]);
  assert.equal(picture.colourAt(700, 500), '#00ff00');
  await server.waitUntilSettled();
});

test('browser.steps returns several screenshots and PDF files, each with its own link', async () => {
  const { body, text } = await runSteps({ url, viewport: { width: 640, height: 480 } }, [
    { do: 'screenshot' },
    { do: 'pdf', paper: 'A5', landscape: true },
    { do: 'screenshot', selector: '#send', format: 'jpeg' },
    { do: 'content', selector: '#end' },
    { do: 'goto', url: `${pages.url}/done?name=Ada&size=s` },
    { do: 'screenshot' },
  ]);
  assert.equal(body.status, 'succeeded', text);
  const { results, artifacts } = Object(body.output);
  assert.deepEqual(
    results.map(({ artifact }: { artifact?: number }) => artifact),
    [0, 1, 2, undefined, undefined, 3],
  );
  assert.ok(results[1].pages >= 1);
  const types = artifacts.map(({ mimeType }: { mimeType: string }) => mimeType);
  assert.deepEqual(types, ['image/png', 'application/pdf', 'image/jpeg', 'image/png']);
  const [first, pdf, jpeg, last] = await Promise.all(artifacts.map(bytesOf));
  assert.notEqual(decodePng(first).colourAt(600, 400), '#00ff00');
  assert.equal(decodePng(last).colourAt(600, 400), '#00ff00');
  assert.equal(pdf.subarray(0, 5).toString(), '%PDF-');
  assert.equal(jpeg.readUInt16BE(0), 0xffd8);
  const invocationResponse = await server.api<Invocation>('GET', agentPath(server, `invocations/${body.id}`), { key });
  const fileDigests = Object(invocationResponse.body.output).artifacts.map(({ size, checksum }: StoredFile) => [
    size,
    checksum,
  ]);
  assert.deepEqual(
    fileDigests,
    artifacts.map(({ size, checksum }: StoredFile) => [size, checksum]),
  );
});

test('browser.steps selects files in a file input', async () => {
  const bytes = randomBytes(1000);
  const { body, text } = await runSteps({ url: `${pages.url}/files` }, [
    {
      do: 'upload',
      selector: '#files',
      files: [
        { name: 'a "b".txt', mimeType: 'text/plain', text: 'grüße' },
        { name: 'bytes', base64: bytes.toString('base64') },
      ],
    },
    { do: 'waitFor', selector: 'text=done' },
    { do: 'extract', fields: { files: { selector: 'li', all: true } } },
  ]);
  assert.equal(body.status, 'succeeded', text);
  assert.deepEqual(Object(body.output).results[2].fields.files, [
    `a "b".txt text/plain ${Buffer.from('grüße').toString('hex')}`,
    `bytes application/octet-stream ${bytes.toString('hex')}`,
  ]);
});

test('browser.steps runs on the page of a running session, and stops at the time limit', async () => {
  const { key: driving } = await issueAgentKey(server, {
    scopes: ['browsers:read', 'browsers:write', 'browsers:connect', 'operations:invoke', 'invocations:read'],
    grants,
  });
  const session = await server.createSession({ keepAlive: true }, driving);
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0] ?? assert.fail('the session has no page');
  await page.goto(url);
  const { body, text } = await runSteps(
    { sessionId: session.id },
    [
      { do: 'fill', selector: '#name', value: 'from outside' },
      { do: 'scroll', y: 500 },
    ],
    { key: driving },
  );
  assert.equal(body.status, 'succeeded', text);
  assert.equal(await page.inputValue('#name'), 'from outside');
  await eventually(
    'the page to have scrolled',
    () => page.evaluate('scrollY'),
    y => y === 500,
  );
  const lateCall = await runSteps(
    { sessionId: session.id, timeoutMs: 1000 },
    [
      { do: 'sleep', ms: 3000 },
      { do: 'fill', selector: '#name', value: 'too late' },
    ],
    { key: driving },
  );
  assert.deepEqual([lateCall.body.status, lateCall.body.error?.code], ['failed', 'timeout'], lateCall.text);
  const laterSteps = [
    { do: 'sleep', ms: 3000 },
    { do: 'extract', fields: { over: { selector: '#over' } } },
  ];
  assert.equal((await runSteps({ sessionId: session.id }, laterSteps, { key: driving })).body.status, 'succeeded');
  assert.equal(await page.inputValue('#name'), 'from outside', 'no step begins after the time limit');
  const permissionRefusal = await runSteps({ sessionId: session.id }, [{ do: 'sleep', ms: 1 }]);
  assert.deepEqual(
    [permissionRefusal.status, permissionRefusal.body.code],
    [403, 'permission_denied'],
    'without browsers:connect',
  );
  await browser.close();
  await server.release(session.id);
});

test('browser.steps stops at the first step that fails, and reports which step failed', async () => {
  const cases: ReadonlyArray<
    readonly [name: string, all: Steps, code: string, step: number | undefined, more?: object]
  > = [
    [
      'no such element',
      [
        { do: 'hover', selector: '#over' },
        { do: 'click', selector: '#none' },
      ],
      'timeout',
      1,
    ],
    ['an invalid selector', [{ do: 'click', selector: '>>>' }], 'not_possible', 0],
    ['no such option', [{ do: 'select', selector: '#size', values: ['xl'] }], 'timeout', 0],
    [
      'an error page',
      [
        { do: 'goto', url: `${pages.url}/missing` },
        { do: 'sleep', ms: 1 },
      ],
      'page_failed',
      0,
    ],
    ['an unknown key', [{ do: 'press', key: 'NoSuchKey' }], 'not_possible', 0],
    ['too long', [{ do: 'sleep', ms: 10_000 }], 'timeout', 0],
    ['an error page at the start', [{ do: 'sleep', ms: 1 }], 'page_failed', undefined, { url: `${pages.url}/missing` }],
  ];
  for (const [name, all, code, step, more = {}] of cases) {
    const { body, text } = await runSteps({ url, timeoutMs: 2000, ...more }, all);
    assert.deepEqual([body.status, body.error?.code], ['failed', code], `${name}: ${text}`);
    assert.equal(Object(body.error?.details).step, step, `${name}: ${text}`);
    assert.equal(body.error?.retryable, false, 'steps before it were done');
  }
  const missingPageResponse = await runSteps({ url, acceptStatus: [404] }, [
    { do: 'goto', url: `${pages.url}/missing` },
  ]);
  assert.deepEqual(
    [missingPageResponse.body.status, Object(missingPageResponse.body.output).status],
    ['succeeded', 404],
  );
});

test('browser.steps refuses invalid steps and a call without an idempotency key, names the invalid field, and loads no page', async () => {
  const hitsBefore = pages.hits('/form');
  const cases: ReadonlyArray<readonly [all: Steps, path: string, message: RegExp]> = [
    [[], 'input.steps', /./],
    [Array.from({ length: 101 }, () => ({ do: 'sleep', ms: 1 })), 'input.steps', /100/],
    [[{ do: 'click' }], 'input.steps.0.selector', /is required by click/],
    [
      [
        { do: 'sleep', ms: 1 },
        { do: 'fill', selector: '#a' },
      ],
      'input.steps.1.value',
      /is required for fill/,
    ],
    [[{ do: 'click', selector: '#a', value: 'x' }], 'input.steps.0.value', /has no effect in click/],
    [Array.from({ length: 21 }, (_, n) => ({ do: n % 2 ? 'pdf' : 'screenshot' })), 'input.steps.20', /at most 20/],
    [[{ do: 'upload', selector: '#a' }], 'input.steps.0.files', /is required by upload/],
    [[{ do: 'upload', selector: '#a', files: [{ name: 'a' }] }], 'input.steps.0.files.0', /either text or base64/],
    [
      [{ do: 'upload', selector: '#a', files: [{ name: 'a', text: '', base64: '' }] }],
      'input.steps.0.files.0',
      /either text or base64/,
    ],
    [[{ do: 'upload', selector: '#a', files: [{ name: '../a', text: '' }] }], 'input.steps.0.files.0.name', /./],
    [[{ do: 'pdf', fullPage: true }], 'input.steps.0.fullPage', /has no effect in pdf/],
    [[{ do: 'sleep', ms: 10_001 }], 'input.steps.0.ms', /10000/],
    [[{ do: 'goto', url: 'file:///etc/passwd' }], 'input.steps.0.url', /./],
    [[{ do: 'evaluate', code: '1' }], 'input.steps.0', /./],
  ];
  for (const [all, path, message] of cases) {
    const { status, body, text } = await runSteps({ url }, all);
    assert.deepEqual([status, body.code], [400, 'invalid_request'], text);
    const issues: Array<{ path: string; message: string }> = Object(body).details.issues;
    const issue = issues.find(one => one.path.startsWith(path)) ?? assert.fail(text);
    assert.match(issue.message, message);
  }
  const missingKeyRefusal = await invoke(server, key, 'browser.steps', { url, steps: [{ do: 'sleep', ms: 1 }] });
  assert.deepEqual(
    [missingKeyRefusal.status, missingKeyRefusal.body.code],
    [400, 'idempotency_key_required'],
    missingKeyRefusal.text,
  );
  assert.equal(pages.hits('/form'), hitsBefore);
});

test('a grant for every read operation does not cover browser.steps', async () => {
  const { key: reader } = await issueAgentKey(server);
  const { body } = await server.api<AgentOperationList>('GET', agentPath(server, 'operations'), { key: reader });
  assert.ok(body.data.length > 0 && body.data.every(({ id }) => id !== 'browser.steps'));
  const { status, body: refused } = await runSteps({ url }, [{ do: 'sleep', ms: 1 }], { key: reader });
  assert.deepEqual([status, refused.code], [403, 'operation_not_granted']);
});

test('browser.steps does not repeat its steps after the server is killed and restarted, and reports their effect as unknown', async () => {
  const all = [
    { do: 'click', selector: '#send' },
    { do: 'waitFor', selector: 'text=old' },
    { do: 'sleep', ms: 10_000 },
  ];
  const hitsBefore = pages.hits('/done');
  const scriptHitsBefore = pages.hits('/shown.js');
  const { status, body } = await runSteps({ url }, all, { prefer: 'respond-async' });
  assert.equal(status, 202);
  // The server is killed only after the response to the form has arrived. Otherwise Chromium itself would request the
  // page again.
  await eventually(
    'the answer to the form to be shown',
    () => pages.hits('/shown.js'),
    hits => hits === scriptHitsBefore + 1,
  );
  await server.kill('SIGKILL');
  await server.start();
  const path = agentPath(server, `invocations/${body.id}`);
  const endedInvocation = await eventually(
    'the invocation to end',
    async () => (await server.api<Invocation>('GET', path, { key })).body,
    one => one.status === 'ambiguous',
  );
  assert.equal(endedInvocation.error?.code, 'upstream_ambiguous');
  assert.equal(pages.hits('/done'), hitsBefore + 1);
  await server.waitUntilSettled();
});
