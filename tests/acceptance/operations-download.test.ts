// The operation `browser.download` and the step `download`. Files arrive complete, from a URL or after a click, several
// at once, and with the names that sites give them. The tests also cover pages that send no file, half a file or an
// endless file.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import type { Download } from '../../contract/files.ts';
import type { Invocation } from '../../contract/invocations.ts';
import { MANAGED_OPERATIONS } from '../../contract/managed-operations.ts';
import { type KeySet, verifyReceipt } from '../../sdk/verify-receipt.ts';
import { Owner } from '../harness/configured.ts';
import { liftLimits } from '../harness/limits.ts';
import { agentPath, invoke, issueAgentKey } from '../harness/operations.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';

const REPORT = randomBytes(3_000_000);
const FILE_NAMES = [
  '../../etc/passwd',
  '..\\..\\boot.ini',
  'a/b\u0000c.txt',
  `${'long'.repeat(100)}.pdf`,
  '\u202egpj.exe',
  'con',
  '.',
];
const attachmentHeaders = (name: string) => ({
  'content-type': 'application/octet-stream',
  'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(name)}`,
});
const pages = await openPages({
  '/files': `<!doctype html><title>Files</title><a id="report" href="/report">report</a>
    <a id="endless" href="/endless">endless</a><a id="half" href="/half">half</a><a id="page" href="/next">page</a>
    <a id="outside" href="http://192.0.2.1/report" download>outside</a>
    <button id="all" onclick="for (const [i, name] of names.entries()) setTimeout(() => {
      const a = document.createElement('a'); a.href = '/named?' + i; a.download = ''; a.click();
    }, 100 * i)">all</button><script>const names = Array.from({ length: ${FILE_NAMES.length} });</script>`,
  '/report': (_, response) => void response.writeHead(200, attachmentHeaders('report.bin')).end(REPORT),
  '/named': ({ url = '' }, response) =>
    void response.writeHead(200, attachmentHeaders(FILE_NAMES[Number(url.split('?')[1])] ?? '')).end('named'),
  '/gone': (_, response) => void response.writeHead(404, { 'content-type': 'text/html' }).end('<title>No</title>'),
  '/half': (_, response) => {
    response.writeHead(200, { ...attachmentHeaders('half.bin'), 'content-length': '1000000' });
    response.write(randomBytes(100_000), () => setTimeout(() => response.destroy(), 200));
  },
  '/endless': (_, response) => {
    response.writeHead(200, attachmentHeaders('endless.bin'));
    const more = setInterval(() => response.write(Buffer.alloc(10_000)), 50);
    response.once('close', () => clearInterval(more));
  },
});
const server = await startServer({ pages, env: { BERTH_SLOTS: '4', BERTH_SESSION_DOWNLOADS: '20000000' } });
await liftLimits(server);
const owner = await Owner.open(server);
const CONNECT_SCOPES = ['operations:invoke', 'invocations:read', 'browsers:connect', 'browsers:read', 'browsers:write'];
const grants = [
  { operationId: 'browser.download' },
  { operationId: 'browser.steps' },
  { operationId: 'reports.fetch' },
];
const { key } = await issueAgentKey(server, { grants });
const { key: connectKey } = await issueAgentKey(server, { grants, scopes: CONNECT_SCOPES });
let callCount = 0;

function call(operation: string, input: object, by = key) {
  callCount += 1;
  return invoke(server, by, operation, input, {
    headers: { 'idempotency-key': `call ${callCount}`, prefer: 'wait=55' },
  });
}
const downloadsOf = ({ output }: Invocation): readonly Download[] => Object(output).downloads;

async function fetchContent({ downloadUrl, size, checksum }: Download): Promise<Buffer> {
  const reply = await fetch(downloadUrl);
  assert.equal(reply.status, 200);
  const bytes = Buffer.from(await reply.arrayBuffer());
  assert.deepEqual([bytes.length, createHash('sha256').update(bytes).digest('hex')], [size, checksum]);
  return bytes;
}

test('browser.download returns the complete file at an address, and the file and the receipt are still available after the session ends', async () => {
  const { body, text } = await call('browser.download', { url: `${pages.url}/report` });
  assert.equal(body.status, 'succeeded', text);
  const [file, ...others] = downloadsOf(body);
  assert.ok(file && others.length === 0);
  assert.deepEqual([file.filename, file.sessionId], ['report.bin', body.sessionId]);
  assert.deepEqual(await fetchContent(file), REPORT);
  await server.waitUntilEnded(file.sessionId);
  const { body: storedInvocation } = await server.api<Invocation>('GET', agentPath(server, `invocations/${body.id}`), {
    key,
  });
  const [storedDownload] = downloadsOf(storedInvocation);
  assert.ok(storedDownload);
  assert.deepEqual(await fetchContent(storedDownload), REPORT);
  const { body: keys } = await server.api<KeySet>('GET', '/.well-known/jwks.json', { key: null });
  await verifyReceipt(String(storedInvocation.receipt), { keys, output: storedInvocation.output });
  const changedOutput = { ...storedInvocation.output, downloads: [{ ...storedDownload, size: 1 }] };
  await assert.rejects(
    async () => verifyReceipt(String(storedInvocation.receipt), { keys, output: changedOutput }),
    /output/,
  );
});

test('browser.download returns all files of a click that starts several downloads, with safe file names', async () => {
  const { body, text } = await call('browser.download', { url: `${pages.url}/files`, selector: '#all' });
  assert.equal(body.status, 'succeeded', text);
  const files = downloadsOf(body);
  assert.equal(files.length, FILE_NAMES.length);
  for (const file of files) {
    assert.doesNotMatch(file.filename, /[/\\\u0000-\u001f\u202e]|^\.\.?$/, JSON.stringify(file.filename));
    assert.ok(file.filename.length > 0 && Buffer.byteLength(file.filename) <= 255);
    assert.equal(String(await fetchContent(file)), 'named');
  }
});

test('a download in a running session returns only the files that the call downloaded', async () => {
  const session = await server.createSession({ keepAlive: true }, connectKey);
  const url = `${pages.url}/files`;
  const openSteps = [
    { do: 'goto', url },
    { do: 'download', selector: '#report' },
  ];
  const stepsResponse = await call('browser.steps', { sessionId: session.id, steps: openSteps }, connectKey);
  assert.equal(stepsResponse.body.status, 'succeeded', stepsResponse.text);
  const downloadResponse = await call('browser.download', { sessionId: session.id, selector: '#report' }, connectKey);
  assert.equal(downloadResponse.body.status, 'succeeded', downloadResponse.text);
  const ids = [stepsResponse, downloadResponse].map(({ body }) => downloadsOf(body).map(({ id }) => id));
  assert.deepEqual(
    ids.map(({ length }) => length),
    [1, 1],
  );
  assert.notDeepEqual(ids[0], ids[1]);
  const refusal = await call('browser.download', { sessionId: session.id }, connectKey);
  assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request']);
  const scopeRefusal = await call('browser.download', { sessionId: session.id, selector: '#report' });
  assert.equal(scopeRefusal.status, 403, 'without browsers:connect');
  await server.release(session.id);
});

test('steps before and after a download are executed, and each download returns its own files', async () => {
  const steps = [
    { do: 'download', selector: '#report' },
    { do: 'screenshot' },
    { do: 'download', selector: '#all' },
    { do: 'extract', fields: { title: { selector: '#report' } } },
  ];
  const { body, text } = await call('browser.steps', { url: `${pages.url}/files`, steps });
  assert.equal(body.status, 'succeeded', text);
  const { results, artifacts, title } = Object(body.output);
  const files = downloadsOf(body);
  assert.deepEqual([title, artifacts.length, files.length], ['Files', 1, 1 + FILE_NAMES.length]);
  assert.deepEqual(results[0], { do: 'download', downloads: [0] });
  assert.deepEqual(results[2], { do: 'download', downloads: FILE_NAMES.map((_, index) => index + 1) });
  assert.deepEqual(results[3].fields, { title: 'report' });
  assert.ok(files[0]);
  assert.deepEqual(await fetchContent(files[0]), REPORT);
  const late = [...steps.slice(0, 1), { do: 'click', selector: '#none' }];
  const stepsResponse = await call('browser.steps', { url: `${pages.url}/files`, timeoutMs: 8000, steps: late });
  assert.deepEqual(
    [stepsResponse.body.status, stepsResponse.body.error?.details?.step],
    ['failed', 1],
    stepsResponse.text,
  );
});

test('a configured browser operation can download a file, and its output schema can require a download', async () => {
  await owner.publish('reports.fetch', {
    ...{ title: 'Fetch a report', description: 'Fetches it.', kind: 'browser', effect: 'read' },
    inputSchema: { type: 'object', additionalProperties: false },
    outputSchema: { type: 'object', required: ['downloads'], properties: { downloads: { minItems: 1 } } },
    binding: { url: `${pages.url}/files`, steps: [{ do: 'download', selector: '#report' }] },
  });
  const { body, text } = await call('reports.fetch', {});
  assert.equal(body.status, 'succeeded', text);
  const [file] = downloadsOf(body);
  assert.ok(file);
  assert.deepEqual(await fetchContent(file), REPORT);
});

for (const [what, input, code, message] of [
  ['a page instead of a file', { url: '/next', timeoutMs: 2000 }, 'timeout', /No download began/],
  ['a click that opens a page', { url: '/files', selector: '#page', timeoutMs: 3000 }, 'timeout', /No download/],
  ['an error page', { url: '/gone' }, 'page_failed', /404/],
  ['a truncated file', { url: '/files', selector: '#half' }, 'download_failed', /"half\.bin" failed/],
  ['an endless file', { url: '/files', selector: '#endless', timeoutMs: 4000 }, 'timeout', /0 of 1 .*"endless\.bin"/],
  ['a private address', { url: 'http://10.0.0.1/report' }, 'page_failed', /403/],
  ['a missing element', { url: '/files', selector: '#none', timeoutMs: 2000 }, 'not_possible', /none/],
] as const)
  test(`browser.download fails for ${what}, and its session is released`, async () => {
    const url = input.url.startsWith('/') ? `${pages.url}${input.url}` : input.url;
    const { body, text } = await call('browser.download', { ...input, url });
    assert.deepEqual([body.status, body.error?.code], ['failed', code], text);
    assert.match(String(body.error?.message), message);
    assert.equal(body.output, undefined);
    await server.waitUntilEnded(String(body.sessionId));
  });

test('a download fails if the network rules of the session block its address', async () => {
  const input = { url: `${pages.url}/files`, selector: '#outside', timeoutMs: 8000, allowedDomains: ['127.0.0.1'] };
  const { body, text } = await call('browser.download', input);
  assert.equal(body.status, 'failed', text);
});

test('browser.download is a read operation, and is included in a grant for all read operations', async () => {
  assert.equal(MANAGED_OPERATIONS['browser.download'].effect, 'read');
  const { key: reader } = await issueAgentKey(server);
  const { status } = await server.api('GET', agentPath(server, 'operations/browser.download'), { key: reader });
  assert.equal(status, 200);
});

test('ended sessions leave no process, file or unfinished database row behind', () => server.waitUntilSettled());
