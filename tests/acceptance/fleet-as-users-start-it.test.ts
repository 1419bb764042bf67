// `npm run fleet` as a user starts it. Sessions are used through the fleet's address, which passes connections to the
// three hosts in turn. Ctrl-C must leave nothing behind. Needs root.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { Context } from '../../contract/contexts.ts';
import type { Limits, ReplaceLimits } from '../../contract/limits.ts';
import type { DebugUrls } from '../../contract/live.ts';
import type { Replay } from '../../contract/recordings.ts';
import type { Session } from '../../contract/sessions.ts';
import { CdpClient } from '../harness/cdp.ts';
import { claimFreePort } from '../harness/free-port.ts';
import { type HttpResult, sendRequest } from '../harness/http.ts';
import { LiveViewer } from '../harness/live-viewer.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';

const ROOT = join(import.meta.dirname, '../..');
const START_MAX_MS = 240_000;
const END_MAX_MS = 120_000;
/** The time limit for recording and storing, which take a long time on a busy machine. */
const RECORDING_TIMEOUT_MS = 180_000;
const HOST_COUNT = 3;
/** The number of requests after which every host has received at least one, because connections go to hosts in turn. */
const REQUESTS_PER_ROUND = 2 * HOST_COUNT;
const SESSIONS = '/v1/browsers/sessions';
const ACCEPT_BYTES_HEADER = { accept: 'application/octet-stream' };
const SITE = 'https://shop.example/';

interface Fleet {
  readonly program: ChildProcess;
  readonly url: string;
  readonly key: string;
  /** The token in the link to the console. The console sends this token with its requests. */
  readonly token: string;
}

let fleet: Fleet;

async function startFleet(): Promise<Fleet> {
  const env = { ...process.env, FLEET_PORT: String(await claimFreePort()), FLEET_SLOTS: '1' };
  const program = spawn('npm', ['run', 'fleet'], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const outputLines: string[] = [];
  for (const stream of [program.stdout, program.stderr])
    createInterface(stream).on('line', line => outputLines.push(line));
  const findInOutput = (pattern: RegExp): string | undefined =>
    outputLines.flatMap(line => pattern.exec(line)?.[1] ?? [])[0];
  await eventually(
    'the fleet to be ready',
    () => (program.exitCode === null ? findInOutput(/^Ctrl-C (ends) it/) : assert.fail(outputLines.join('\n'))),
    Boolean,
    START_MAX_MS,
  );
  const url = findInOutput(/^The fleet serves at (http:\S+),/) ?? assert.fail(outputLines.join('\n'));
  const key = findInOutput(/^ {2}key +(\S+)/) ?? assert.fail(outputLines.join('\n'));
  const link = new URL(findInOutput(/^ {2}console +(\S+)/) ?? assert.fail(outputLines.join('\n')));
  assert.equal(link.origin, url);
  return { program, url, key, token: /^#token=(\S+)$/.exec(link.hash)?.[1] ?? assert.fail(link.hash) };
}

/**
 * Sends SIGINT to the process group, which contains npm and the program that npm runs, as Ctrl-C in a terminal does.
 * npm does not wait for that program, so a signal to npm alone is not enough.
 */
function interrupt({ program: { pid, exitCode, signalCode } }: Fleet): void {
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGINT');
}

before(async () => {
  fleet = await startFleet();
});
after(() => interrupt(fleet));

type CreatedSession = Session & { readonly connectUrl: string };

interface Options {
  readonly body?: unknown;
  readonly headers?: OutgoingHttpHeaders;
}

function api<Body>(method: string, path: string, { body, headers }: Options = {}): Promise<HttpResult<Body>> {
  const bytes = Buffer.isBuffer(body) ? body : undefined;
  const isJson = body !== undefined && !bytes;
  return sendRequest<Body>(fleet.url + path, {
    method,
    headers: {
      ...(headers?.authorization ? {} : { 'x-bb-api-key': fleet.key }),
      ...(isJson ? { 'content-type': 'application/json' } : {}),
      ...headers,
    },
    body: isJson ? JSON.stringify(body) : bytes,
  });
}

async function sendExpecting<Body>(status: number, ...[method, path, options]: Parameters<typeof api>): Promise<Body> {
  const response = await api<Body>(method, path, options);
  assert.equal(response.status, status, `${method} ${path}: ${response.text}`);
  return response.body;
}

const create = (body: object = {}): Promise<CreatedSession> =>
  sendExpecting<CreatedSession>(201, 'POST', SESSIONS, { body: { keepAlive: true, ...body } });
const read = (id: string): Promise<Session> => sendExpecting<Session>(200, 'GET', `${SESSIONS}/${id}`);

async function release(id: string): Promise<void> {
  await sendExpecting(200, 'POST', `${SESSIONS}/${id}`, { body: { status: 'REQUEST_RELEASE' } });
  await eventually(
    `session ${id} to end`,
    () => read(id),
    ({ status }) => status === 'COMPLETED',
  );
}

async function runOnPage<T>(
  { connectUrl }: CreatedSession,
  work: (cdp: CdpClient, page: string) => Promise<T>,
): Promise<T> {
  const cdp = await CdpClient.connect(connectUrl);
  try {
    return await work(cdp, await cdp.attachToPage());
  } finally {
    await cdp.close();
  }
}

test('a session can be read, connected to and released through every host', async () => {
  const session = await create();
  for (let turn = 0; turn < REQUESTS_PER_ROUND; turn += 1) {
    assert.equal((await read(session.id)).status, 'RUNNING');
    assert.equal(await runOnPage(session, (cdp, page) => cdp.evaluate('1 + 1', page)), 2);
  }
  await release(session.id);
  // Connections go to the three hosts in turn, and each iteration sends two requests. Each release therefore reaches a
  // different host from the one that received its create, and every host gets one release.
  for (let turn = 0; turn < HOST_COUNT; turn += 1) {
    const { id } = await create();
    const body = { status: 'REQUEST_RELEASE' };
    assert.equal((await sendExpecting<Session>(200, 'POST', `${SESSIONS}/${id}`, { body })).status, 'COMPLETED');
  }
});

test('every create request with the same idempotency key returns the same session, regardless of which host receives the request', async () => {
  const headers = { 'idempotency-key': `once-${process.pid}` };
  const ask = () => api<CreatedSession>('POST', SESSIONS, { body: { keepAlive: true }, headers });
  const { body } = await ask();
  for (let turn = 0; turn < REQUESTS_PER_ROUND; turn += 1) assert.equal((await ask()).body.id, body.id);
  await release(body.id);
});

test('a full fleet refuses create requests until a session has ended', async () => {
  const all = await Promise.all(Array.from({ length: HOST_COUNT }, () => create()));
  const refusal = await api<{ code: string }>('POST', SESSIONS, { body: {} });
  assert.deepEqual([refusal.status, refusal.body.code], [503, 'capacity'], refusal.text);
  const [first, ...others] = all;
  await release(first?.id ?? assert.fail());
  const createResponse = await eventually(
    'a create to be admitted',
    () => api<CreatedSession>('POST', SESSIONS, { body: { keepAlive: true } }),
    ({ status }) => status === 201,
  );
  for (const { id } of [...others, createResponse.body]) await release(id);
});

async function openLimits(): Promise<{
  read(): Promise<Limits>;
  replace(browsers: NonNullable<ReplaceLimits['browsers']>): Promise<void>;
}> {
  const authorization = `Bearer ${fleet.token}`;
  const { data } = await sendExpecting<{ data: { id: string }[] }>(200, 'GET', '/v1/applications', {
    headers: { authorization },
  });
  const path = `/v1/applications/${data[0]?.id}/limits`;
  const read = () => sendExpecting<Limits>(200, 'GET', path, { headers: { authorization } });
  return {
    read,
    replace: async browsers => {
      const headers = { authorization, 'if-match': `"${(await read()).revision}"` };
      await sendExpecting(200, 'PUT', path, { body: { browsers }, headers });
    },
  };
}

test('the concurrency limit of an application applies across all hosts', async () => {
  const limits = await openLimits();
  await limits.replace({ maxConcurrent: 2 });
  const expectedDetails = { limit: 2, used: 2, scope: 'application', retryAfterSeconds: 5 };
  const assertRefused = async (): Promise<void> => {
    const { status, body, headers, text } = await api<ErrorBody>('POST', SESSIONS, { body: {} });
    assert.deepEqual([status, body.code, body.details], [429, 'concurrency_limit', expectedDetails], text);
    assert.deepEqual([headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']], ['2', '0']);
  };
  const [first, second] = [await create(), await create()]; // on two hosts; the third host has a free slot
  // Each kind of request has its own loop, so that every host gets each kind.
  for (let turn = 0; turn < REQUESTS_PER_ROUND; turn += 1) await assertRefused();
  for (let turn = 0; turn < REQUESTS_PER_ROUND; turn += 1) {
    const { configured, effective, usage, ceiling } = await limits.read();
    const all = [configured, effective, usage, ceiling].map(({ browsers }) => browsers.maxConcurrent);
    assert.deepEqual(all, [2, 2, 2, HOST_COUNT]);
  }
  for (let turn = 0; turn < REQUESTS_PER_ROUND; turn += 1) {
    const [project] = await sendExpecting<{ concurrency: number }[]>(200, 'GET', '/v1/projects');
    assert.equal(project?.concurrency, 2);
  }
  await release(first.id);
  const next = await create();
  await assertRefused();
  await limits.replace({});
  for (const { id } of [second, next]) await release(id);
});

test('a host can load a context that another host saved', async () => {
  const { id } = await sendExpecting<Context>(201, 'POST', '/v1/browsers/contexts', { body: {} });
  const browserSettings = { context: { id, persist: true } };
  const cookie = { url: SITE, name: 'seen', value: 'yes', expires: Date.now() / 1000 + 86_400 };
  const savingSession = await create({ browserSettings });
  await runOnPage(savingSession, (cdp, page) => cdp.send('Network.setCookie', cookie, page));
  await release(savingSession.id);
  await eventually(
    'the context to be saved',
    () => sendExpecting<Context>(200, 'GET', `/v1/browsers/contexts/${id}`),
    ({ version }) => version === 1,
  );
  const loadingSession = await create({ browserSettings: { context: { id } } });
  const { cookies } = await runOnPage(loadingSession, (cdp, page) =>
    cdp.send('Network.getCookies', { urls: [SITE] }, page),
  );
  assert.match(JSON.stringify(cookies), /"name":"seen","value":"yes"/);
  await release(loadingSession.id);
});

test('a session accepts uploads through every host, and every host serves its downloads and recordings', async () => {
  const session = await create({ browserSettings: { recordSession: true } });
  const sent = await uploadRequest('order.txt', 'twelve');
  for (let turn = 0; turn < HOST_COUNT; turn += 1)
    assert.equal((await api('POST', `${SESSIONS}/${session.id}/uploads`, sent)).status, 200);
  const save = `document.body.innerHTML = '<h1>Saved</h1>';
    setInterval(() => { document.body.style.background = 'hsl(' + (Date.now() / 10) % 360 + ',90%,60%)'; }, 250);
    Object.assign(document.createElement('a'), { href: URL.createObjectURL(new Blob(['receipt'])), download: 'receipt.txt' }).click()`;
  const listFiles = () =>
    api<{ downloads?: { id: string }[] }>('GET', `/v1/browsers/downloads?sessionId=${session.id}`);
  const listReplays = () => api<{ pages?: Replay[] }>('GET', `${SESSIONS}/${session.id}/replays`);
  const [filesResponse, film] = await runOnPage(session, async (cdp, page) => {
    await cdp.evaluate(save, page);
    const filesResponse = await eventually(
      'the file to be stored',
      listFiles,
      ({ body }) => body.downloads?.length === 1,
      RECORDING_TIMEOUT_MS,
    );
    return [
      filesResponse,
      await eventually('the recording', listReplays, ({ body }) => body.pages?.length === 1, RECORDING_TIMEOUT_MS),
    ] as const;
  });
  await release(session.id);
  for (let turn = 0; turn < HOST_COUNT; turn += 1) {
    const path = `/v1/browsers/downloads/${filesResponse.body.downloads?.[0]?.id}`;
    assert.equal((await api('GET', path, { headers: ACCEPT_BYTES_HEADER })).text, 'receipt');
  }
  const page = film.body.pages?.[0]?.pageId ?? assert.fail();
  for (let turn = 0; turn < HOST_COUNT; turn += 1)
    assert.match((await api('GET', `${SESSIONS}/${session.id}/replays/${page}`)).text, /^#EXTM3U/);
});

test('a live view of a session can be opened through every host', async () => {
  const session = await create();
  const { debuggerFullscreenUrl } = await sendExpecting<DebugUrls>(200, 'GET', `${SESSIONS}/${session.id}/debug`);
  const viewers = await Promise.all(Array.from({ length: HOST_COUNT }, () => LiveViewer.open(debuggerFullscreenUrl)));
  for (const viewer of viewers) await eventually('a frame for the viewer', () => viewer.frameCount > 0);
  await release(session.id);
});

/**
 * Returns the leftovers of the fleet on the machine: processes with the fleet's URL in their environment, network
 * namespaces, and folders.
 */
function findLeftovers({ url }: Fleet): string[] {
  const mark = `BERTH_PUBLIC_URL=${url}\0`;
  const pids = readdirSync('/proc').filter(name => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, 'utf8').includes(mark);
    } catch {
      return false; // the process has ended
    }
  });
  return [...pids.map(pid => `process ${pid}`), ...listNamespacesAndFolders().filter(name => !namesBefore.has(name))];
}

const listNamespacesAndFolders = (): string[] => [
  // `/run/netns` exists only after the first namespace was created.
  ...(existsSync('/run/netns') ? readdirSync('/run/netns') : []).filter(name => name.startsWith('fleet')),
  ...readdirSync(tmpdir()).filter(name => name.startsWith('berth-fleet-')),
];
const namesBefore = new Set(listNamespacesAndFolders());

test('Ctrl-C stops the fleet while a session is running, and leaves nothing behind', async () => {
  await create();
  assert.ok(findLeftovers(fleet).length > HOST_COUNT, 'the check finds a running fleet');
  interrupt(fleet);
  await eventually(
    'all leftovers of the fleet to be removed',
    () => findLeftovers(fleet),
    left => left.length === 0,
    END_MAX_MS,
  );
});
