// Tests the HTTP rules over a real socket. The domain is replaced by small objects that record how they were called.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Registry } from 'prom-client';
import { parse } from 'yaml';
import type { Application } from '../../../contract/applications.ts';
import type { Issue, Warning } from '../../../contract/common.ts';
import { BROWSER_LIMITS_DEFAULT } from '../../../contract/limits.ts';
import { OPERATION_IDS, operation, pathsOf } from '../../../contract/operations.ts';
import { claimFreePort } from '../../../tests/harness/free-port.ts';
import { serviceDocuments } from '../../domain/config/service-documents.ts';
import type { ContextMethods } from '../../domain/contexts/contexts.ts';
import type { Events } from '../../domain/events/api.ts';
import { fault, sessionNotRunning } from '../../domain/faults.ts';
import { noForwarding } from '../../domain/fleet/forwarding.ts';
import type { AccountCaller, AgentCaller } from '../../domain/identity/caller.ts';
import type { IdentityServices } from '../../domain/identity/identity.ts';
import { WaitingBytes } from '../../domain/limits/waiting-bytes.ts';
import type { Logs } from '../../domain/logs/api.ts';
import type { Recordings } from '../../domain/recordings/api.ts';
import type { SessionRequest, Sessions, SessionView } from '../../domain/sessions/api.ts';
import { systemClock } from '../../kit/clock.ts';
import { type AccountId, type ApplicationId, type HostId, type KeyId, newId, type TokenId } from '../../kit/ids.ts';
import type { Log, LogFields } from '../../kit/log.ts';
import { noTracer } from '../../kit/trace.ts';
import { WorkerPool } from '../../kit/worker-pool.ts';
import { listenForPeers } from '../forward/peer-listener.ts';
import { type Http, type HttpParts, openHttp } from './server.ts';

const ID = '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d11';
const APP = '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d10' as ApplicationId;
const KEY = 'the-agent-key';
const READ_ONLY_KEY = 'the-reading-key';
const TOKEN = 'the-token';

const VIEW: SessionView = {
  id: ID,
  createdAt: '2026-09-24T10:15:30.123Z',
  updatedAt: '2026-09-24T10:15:30.123Z',
  startedAt: '2026-09-24T10:15:30.123Z',
  expiresAt: '2026-09-24T11:15:30.123Z',
  projectId: APP,
  status: 'RUNNING',
  proxyBytes: 0,
  keepAlive: false,
  region: 'local',
  userMetadata: {},
};

const APPLICATION: Application = {
  id: APP,
  name: 'Shop',
  slug: 'shop',
  role: 'owner',
  billingAccountId: 'a',
  environment: 'development',
  revision: 3,
  createdAt: VIEW.createdAt,
  updatedAt: VIEW.updatedAt,
};

const agent = (...scopes: string[]): AgentCaller => ({
  kind: 'agentKey',
  applicationId: APP,
  keyId: 'key-1' as KeyId,
  scopes: new Set(scopes),
  source: { ip: '127.0.0.1' },
});

const account: AccountCaller = {
  kind: 'account',
  accountId: 'account-1' as AccountId,
  via: { kind: 'personal_token', id: 'token-1' as TokenId },
  scopes: new Set(['applications:write', 'keys:write', 'account:tokens']),
  cidrAllow: [],
  source: { ip: '127.0.0.1' },
};

/** The folder for incoming uploads. It is empty while no request is in progress. */
const INCOMING_FOLDER = join(tmpdir(), `berth-incoming-${process.pid}`);
after(() => rmSync(INCOMING_FOLDER, { recursive: true, force: true }));

const neverCalledSync = (): never => assert.fail('this should not have been asked');
const neverCalled = async (): Promise<never> => neverCalledSync();

const CONTEXTS: ContextMethods = {
  create: neverCalled,
  list: neverCalled,
  read: neverCalled,
  destroy: neverCalled,
  versions: neverCalled,
  restore: neverCalled,
  fork: neverCalled,
  exportState: neverCalled,
  importState: neverCalled,
};

const SESSIONS: Sessions = {
  create: async (_, request) => ({ session: VIEW, warnings: request.warnings, waitedMs: 0 }),
  awaitExisting: async () => VIEW,
  list: async () => ({ sessions: [VIEW], nextBefore: ID }),
  read: async () => VIEW,
  update: async () => VIEW,
  usage: async () => ({ browserMinutes: 4.5, proxyBytes: 0 }),
};

/** A stub of `Sessions` that adds the request of each create to `requests`. */
const stubSessions = (requests: SessionRequest[]): Sessions => ({
  ...SESSIONS,
  create: async (_, request) => {
    requests.push(request);
    return { session: VIEW, warnings: [], waitedMs: 0 };
  },
});

const LIMITS: HttpParts['limits'] = {
  read: neverCalled,
  replace: neverCalled,
  effective: async () => ({ ...BROWSER_LIMITS_DEFAULT, maxConcurrent: 4 }),
};

const FILES: HttpParts['files'] = {
  uploads: { allow: neverCalled, upload: neverCalled },
  downloads: {
    list: neverCalled,
    read: neverCalled,
    file: neverCalled,
    remove: neverCalled,
    archive: async () => [],
    fileOfLink: neverCalled,
  },
};

const EVENTS: Events = {
  list: async () => ({ events: [] }),
  follow: emptyStream,
};

const RECORDINGS: Recordings = {
  replays: async () => ({ pages: [] }),
  playlist: async () => '#EXTM3U\n',
  picture: async () => undefined,
  requestFiles: async () => [],
  files: async () => [],
};

const LOGS: Logs = {
  list: async () => ({ entries: [], state: 'disabled' }),
  follow: emptyStream,
  har: async () => ({ pieces: emptyStream(), state: 'on' }),
};

async function* emptyStream(): AsyncGenerator<never, void> {}

const callers: IdentityServices['callers'] = {
  authenticate: async ({ authorization }, expected) => {
    const callersByHeader: Readonly<Record<string, AgentCaller | AccountCaller>> = {
      [`Bearer ${KEY}`]: agent('browsers:read', 'browsers:write', 'browsers:connect'),
      [`Bearer ${READ_ONLY_KEY}`]: agent('browsers:read'),
      [`Bearer ${TOKEN}`]: account,
    };
    const caller = callersByHeader[authorization ?? ''];
    if (caller?.kind !== expected) throw fault('invalid_credentials', 'The credential is not valid.');
    return caller as never; // The kind of the caller was checked above.
  },
};

const IDENTITY: IdentityServices = {
  callers,
  keyUses: { hold: () => ({ close: () => {} }) },
  applications: {
    create: async () => APPLICATION,
    insert: neverCalled,
    list: async () => ({ data: [APPLICATION] }),
    read: async () => APPLICATION,
    rename: async (_caller, _id, ifMatch, { name }) => ({ ...APPLICATION, name: `${name} ${ifMatch}` }),
    require: neverCalled,
    canAccess: neverCalled,
    ofAgent: async () => ({
      id: APP,
      name: 'Shop',
      slug: 'shop',
      billingAccountId: 'account-1' as AccountId,
      revision: 3,
      createdAt: new Date(0),
      updatedAt: new Date(0),
    }),
  },
  agentKeys: {
    create: neverCalled,
    issue: neverCalled,
    list: neverCalled,
    read: neverCalled,
    change: neverCalled,
    revoke: async () => {},
    end: neverCalled,
    rotate: neverCalled,
  },
  tokens: {
    create: neverCalled,
    issue: neverCalled,
    list: neverCalled,
    current: neverCalled,
    end: neverCalled,
    revoke: async () => {},
    revokeSent: async () => {},
  },
};

const logLines: Array<LogFields & { event: string }> = [];
const write = (event: string, fields?: LogFields): void => void logLines.push({ event, ...fields });
const log: Log = { debug: write, info: write, warn: write, error: write, with: () => log };

const closeFunctions: Array<() => Promise<void>> = [];
after(async () => {
  for (const close of closeFunctions) await close();
});

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Body;
  /** The body, if it is an array. */
  readonly list: readonly Body[];
}

/** The fields that these tests check, for all kinds of bodies. */
interface Body {
  readonly statusCode: number;
  readonly error: string;
  readonly message: string;
  readonly code: string;
  readonly requestId: string;
  readonly details: { readonly issues: readonly Issue[]; readonly scopes: readonly string[] };
  readonly warnings: readonly Warning[];
  readonly id: string;
  readonly name: string;
  readonly ownerId: string;
  readonly status: string;
  readonly region: string;
  readonly defaultTimeout: number;
  readonly concurrency: number;
  readonly data: { readonly sessionId: string };
  readonly value: { readonly error: string; readonly stacktrace: string };
  readonly checks: ReadonlyArray<{ readonly detail: string }>;
  readonly openapi: string;
  readonly paths: Readonly<Record<string, object>>;
  readonly components: { readonly schemas: object };
}

type Ask = (
  method: string,
  path: string,
  more?: { body?: unknown; raw?: string; key?: string; headers?: Record<string, string> },
) => Promise<Reply>;

/** A stub: no test in this file signs in. */
const PEOPLE = { signIn: {}, account: {}, sessions: {} } as unknown as HttpParts['people'];

/** A stub: no test in this file has consumers. */
const CONSUMERS = { identities: {}, upstream: {} } as unknown as HttpParts['consumers'];

/** A stub: no test in this file has members. */
const MEMBERS = { members: {}, invitations: {} } as unknown as HttpParts['members'];

const workers = new WorkerPool();
after(() => workers.close());

async function serve(parts: Partial<HttpParts> = {}): Promise<Ask & Pick<Http, 'url' | 'server' | 'close'>> {
  const http = await openHttp({
    listen: { host: '127.0.0.1', port: 0 },
    compat: true,
    offeredChoices: { regions: ['local'], engines: ['chromium'] },
    people: PEOPLE,
    members: MEMBERS,
    consumers: CONSUMERS,
    consumerParts: {
      actions: { list: neverCalled, read: neverCalled, challenge: neverCalled, decide: neverCalled },
      receipts: { list: neverCalled, read: neverCalled },
      exports: { begin: neverCalled },
      handoffs: { list: neverCalled, read: neverCalled, claim: neverCalled },
    },
    mcp: {
      tools: { call: neverCalled, resume: neverCalled, onlySession: neverCalled },
      operations: { listGranted: neverCalled, call: neverCalled, resume: neverCalled, result: neverCalled },
      stateKey: Buffer.alloc(32),
    },
    handoffs: {
      ...{ request: neverCalled, list: neverCalled, read: neverCalled, claim: neverCalled },
      ...{ renew: neverCalled, complete: neverCalled, cancel: neverCalled },
    },
    webhooks: {
      ...{
        create: neverCalled,
        list: neverCalled,
        read: neverCalled,
        change: neverCalled,
        remove: neverCalled,
        rotateKey: neverCalled,
      },
      ...{ test: neverCalled, deliveries: neverCalled, readDelivery: neverCalled, redeliver: neverCalled },
    },
    invocations: {
      ...{
        discover: neverCalled,
        listCallable: neverCalled,
        readOperation: neverCalled,
        invoke: neverCalled,
        list: neverCalled,
        read: neverCalled,
      },
      ...{ cancel: neverCalled, receiptStatus: neverCalled, file: neverCalled },
    },
    applicationInvocations: { list: neverCalled, read: neverCalled },
    configuredOperations: {
      ...{
        list: neverCalled,
        read: neverCalled,
        configure: neverCalled,
        publish: neverCalled,
        withdraw: neverCalled,
        delete: neverCalled,
      },
    },
    storedCredentials: {
      list: neverCalled,
      read: neverCalled,
      write: neverCalled,
      rollBack: neverCalled,
      delete: neverCalled,
    },
    version: '0.1.0',
    inbox: { read: neverCalled, readNotifications: neverCalled, changeNotifications: neverCalled },
    actions: {
      agent: { prepare: neverCalled, read: neverCalled, execute: neverCalled, cancel: neverCalled },
      applicationActions: {
        list: neverCalled,
        read: neverCalled,
        readApproval: neverCalled,
        challenge: neverCalled,
        decide: neverCalled,
      },
    },
    device: {
      starter: { start: neverCalled },
      approval: { read: neverCalled, decide: neverCalled },
      collector: { collect: neverCalled },
      states: { read: neverCalled },
    },
    documents: serviceDocuments({
      publicUrl: 'http://berth.test',
      version: '0.1.0',
      regions: [],
      signIn: { methods: ['password'], registration: 'invite', minPasswordLength: 12 },
    }),
    clock: systemClock,
    log,
    trace: noTracer,
    identity: IDENTITY,
    rates: { take: () => {} },
    sessions: SESSIONS,
    limits: LIMITS,
    usage: { read: neverCalled },
    topUps: {
      quote: neverCalled,
      open: neverCalled,
      list: neverCalled,
      read: neverCalled,
      cancel: neverCalled,
      replaceAutoTopUp: neverCalled,
    },
    credits: { read: neverCalled, entries: neverCalled, usage: neverCalled },
    host: {
      thisHost: { read: neverCalled, examine: neverCalled },
      allHosts: { list: neverCalled, sessions: neverCalled, drain: neverCalled },
    },
    audit: { list: neverCalled },
    outbox: { list: neverCalled },
    signingKeys: { jwks: neverCalled },
    files: FILES,
    idempotency: { begin: neverCalled, digestOf: () => Buffer.alloc(32) },
    contexts: CONTEXTS,
    incomingDir: INCOMING_FOLDER,
    waitingBytes: new WaitingBytes(),
    workers,
    extensions: { upload: neverCalled, read: neverCalled, remove: neverCalled },
    certificates: { upload: neverCalled, list: neverCalled, read: neverCalled, remove: neverCalled },
    events: EVENTS,
    logs: LOGS,
    recordings: RECORDINGS,
    discover: neverCalled,
    live: {
      urls: neverCalled,
      revoke: neverCalled,
      resolveUploader: neverCalledSync,
      resolveInspector: neverCalledSync,
    },
    frontEnd: { of: neverCalled, folderOf: () => undefined },
    metrics: new Registry(),
    forwarding: noForwarding(newId<HostId>(new Date())),
    linkedObject: () => undefined,
    ...parts,
  });
  closeFunctions.push(() => http.close());
  const ask: Ask = async (method, path, { body, raw, key, headers } = {}) => {
    const response = await fetch(http.url + path, {
      method,
      headers: {
        ...(key ? { authorization: `Bearer ${key}` } : {}),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined && raw === undefined ? {} : { body: raw ?? JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== '';
    const read = isJson ? JSON.parse(text) : undefined;
    return { status: response.status, headers: response.headers, text, body: read, list: read };
  };
  return Object.assign(ask, { url: http.url, server: http.server, close: () => http.close() });
}

const ask = await serve();

// ---- errors --------------------------------------------------------------------------------------------------------

test('an error has the documented body, and the request id of the error is also in a header', async () => {
  const { status, headers, body } = await ask('GET', '/v1/nothing?token=secret');
  assert.equal(status, 404);
  assert.deepEqual(Object.keys(body), ['statusCode', 'error', 'message', 'code', 'requestId']);
  assert.deepEqual([body.statusCode, body.error, body.code], [404, 'Not Found', 'route_not_found']);
  assert.match(body.requestId, /^req_[0-9a-f]{32}$/);
  assert.equal(headers.get('x-request-id'), body.requestId);
  assert.ok(!body.message.includes('secret'));
  assert.equal(headers.get('content-type'), 'application/json; charset=utf-8');
});

test('keeps a well-formed request id from the caller, and replaces an invalid request id', async () => {
  const validIdResponse = await ask('GET', '/healthz', { headers: { 'x-request-id': 'trace-0001.a:b' } });
  assert.equal(validIdResponse.headers.get('x-request-id'), 'trace-0001.a:b');
  for (const id of ['short', 'x'.repeat(200), 'with blanks in it', 'a"b"c"d"e'])
    assert.match(
      (await ask('GET', '/healthz', { headers: { 'x-request-id': id } })).headers.get('x-request-id') ?? '',
      /^req_/,
    );
});

test('refuses an unsupported method with 405, and lists the supported methods', async () => {
  const { status, headers, body } = await ask('PUT', '/v1/browsers/sessions');
  assert.deepEqual([status, body.code, headers.get('allow')], [405, 'method_not_allowed', 'GET, HEAD, POST']);
  assert.equal((await ask('PATCH', `/v1/sessions/${ID}`, { raw: 'x'.repeat(10) })).status, 405);
});

test('does not reveal the cause of an internal error to the caller', async () => {
  const brokenServer = await serve({
    sessions: { ...SESSIONS, read: async () => Promise.reject(new Error('password=hunter2')) },
  });
  const { status, body, text } = await brokenServer('GET', `/v1/browsers/sessions/${ID}`, { key: KEY });
  assert.deepEqual([status, body.code], [500, 'internal']);
  assert.ok(!text.includes('hunter2'));
  assert.ok(logLines.some(line => line.event === 'http.failure' && line.requestId === body.requestId));
});

test('responds to malformed HTTP requests with the standard error body', async () => {
  const port = Number(new URL(ask.url).port);
  assert.match(await sendRaw(port, 'NONSENSE\r\n\r\n'), /^HTTP\/1\.1 400 Bad Request\r\n.*"code":"invalid_request"/s);
  assert.match(
    await sendRaw(port, `GET / HTTP/1.1\r\nHost: a\r\nX-Big: ${'x'.repeat(20_000)}\r\n\r\n`),
    /^HTTP\/1\.1 431 .*"code":"headers_too_large"/s,
  );
  assert.match(
    await sendRaw(port, 'GET /%zz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
    /^HTTP\/1\.1 400 Bad Request\r\n.*"code":"invalid_request"/s,
  );
});

test('refuses request headers that do not arrive in time, and names the time limit', async () => {
  const connected = once(ask.server, 'connection');
  const response = sendRaw(Number(new URL(ask.url).port), 'GET / HTTP/1.1\r\n');
  const [socket] = await connected;
  // Node emits this event when the time limit for the headers has passed.
  ask.server.emit('clientError', Object.assign(new Error('timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
  assert.match(
    await response,
    /^HTTP\/1\.1 400 Bad Request\r\n.*The request headers were not received within 15 seconds\./s,
  );
});

function sendRaw(port: number, text: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let receivedText = '';
  const socket = connect(port, '127.0.0.1', () => socket.write(text));
  socket.on('data', data => {
    receivedText += data;
  });
  socket.on('close', () => resolve(receivedText));
  socket.on('error', reject);
  return promise;
}

test('the caller receives a refusal that is sent before the end of the request body, even if the connection is closed afterwards', async () => {
  const port = Number(new URL(ask.url).port);
  const body = 'x'.repeat(10 * 1024 ** 2);
  const close = 'Connection: close\r\n';
  for (let time = 0; time < 15; time++) {
    const head = `POST /v1/browsers/sessions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${close}`;
    const largeRequest = `${head}Authorization: Bearer ${KEY}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    assert.match(await sendRaw(port, largeRequest), /^HTTP\/1\.1 413 .*"code":"payload_too_large"/s);
    const anonymousRequest = `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
    assert.match(await sendRaw(port, anonymousRequest), /^HTTP\/1\.1 401 .*"code":"invalid_credentials"/s);
  }
});

// ---- credential, scope ---------------------------------------------------------------------------------------------

test('does not read the body of a request without a valid credential', async () => {
  const { status, headers, body } = await ask('POST', '/v1/browsers/sessions', {
    raw: '{',
    headers: { 'content-type': 'application/json' },
  });
  assert.deepEqual([status, body.code, headers.get('www-authenticate')], [401, 'invalid_credentials', 'Bearer']);
});

test('every operation that requires a credential refuses a request without a credential', async () => {
  for (const id of OPERATION_IDS) {
    if (operation(id).credential === 'public' || operation(id).credential === 'connect') continue;
    for (const { path } of pathsOf(id, true)) {
      const { status } = await ask(operation(id).method, path.replace(/\{\w+\}/g, ID));
      assert.equal(status, 401, `${operation(id).method} ${path}`);
    }
  }
});

test('refuses credentials of the wrong kind and credentials without the required scope', async () => {
  assert.equal((await ask('GET', '/v1/browsers/sessions', { key: TOKEN })).status, 401);
  assert.equal((await ask('GET', '/v1/applications', { key: KEY })).status, 401);
  const { status, body } = await ask('POST', '/v1/browsers/sessions', { key: READ_ONLY_KEY });
  assert.deepEqual([status, body.code, body.details.scopes], [403, 'permission_denied', ['browsers:write']]);
});

// ---- bodies and queries --------------------------------------------------------------------------------------------

const JSON_HEADERS = { 'content-type': 'application/json' };

test('counts authenticated requests toward the rate limits, except health checks and the creation and release of sessions', async () => {
  const countedRequests: Array<readonly [string, boolean]> = [];
  const take = ({ kind }: AgentCaller | AccountCaller, isWrite: boolean): void =>
    void countedRequests.push([kind, isWrite]);
  const countingServer = await serve({ rates: { take } });
  await countingServer('GET', '/v1/browsers/sessions', { key: 'unknown' });
  await countingServer('GET', '/v1/browsers/sessions', { key: TOKEN });
  await countingServer('POST', '/v1/browsers/sessions', { key: KEY, body: {} });
  await countingServer('POST', `/v1/browsers/sessions/${ID}`, { key: KEY, body: { status: 'REQUEST_RELEASE' } });
  await countingServer('GET', '/healthz', { key: KEY });
  assert.deepEqual(countedRequests, []);
  await countingServer('GET', '/v1/browsers/sessions', { key: KEY });
  await countingServer('POST', '/v1/applications', { key: TOKEN, body: { name: 'Shop' } });
  assert.deepEqual(countedRequests, [
    ['agentKey', false],
    ['account', true],
  ]);
});

test('treats a missing body, an empty body and {} as equal', async () => {
  for (const more of [{}, { raw: '', headers: JSON_HEADERS }, { raw: ' \n', headers: JSON_HEADERS }, { body: {} }])
    assert.equal((await ask('POST', '/v1/browsers/sessions', { key: KEY, ...more })).status, 201);
});

const REFUSED_BODIES: ReadonlyArray<
  readonly [string, { raw: string; headers?: Record<string, string> }, number, string]
> = [
  ['an incomplete JSON document', { raw: '{"a":' }, 400, 'invalid_request'],
  ['a list', { raw: '[]' }, 400, 'invalid_request'],
  ['null', { raw: 'null' }, 400, 'invalid_request'],
  ['a number for a boolean', { raw: '{"keepAlive":1}' }, 400, 'invalid_request'],
  ['a string for a number', { raw: '{"timeout":"900"}' }, 400, 'invalid_request'],
  ['a __proto__ field', { raw: '{"userMetadata":{"__proto__":{"a":"b"}}}' }, 400, 'invalid_request'],
  ['deep nesting', { raw: `{"userMetadata":${'{"a":'.repeat(40)}1${'}'.repeat(40)}}` }, 400, 'invalid_request'],
  ['very deep nesting', { raw: '['.repeat(400_000) }, 400, 'invalid_request'],
  ['a body of 1 MB', { raw: `{"a":"${'x'.repeat(1_000_000 - 8)}"}` }, 413, 'payload_too_large'],
  ['plain text', { raw: '{}', headers: { 'content-type': 'text/plain' } }, 415, 'unsupported_media_type'],
];
for (const [name, more, status, code] of REFUSED_BODIES)
  test(`refuses ${name} with the error ${code}`, async () => {
    const response = await ask('POST', '/v1/browsers/sessions', { key: KEY, headers: JSON_HEADERS, ...more });
    assert.deepEqual([response.status, response.body.code], [status, code]);
    assert.equal(response.headers.get('x-should-retry'), 'false');
  });

test('accepts a body that is one byte smaller than 1 MB', async () => {
  const raw = `{"a":"${'x'.repeat(999_999 - 8)}"}`;
  assert.equal(raw.length, 999_999);
  assert.equal((await ask('POST', '/v1/browsers/sessions', { key: KEY, raw, headers: JSON_HEADERS })).status, 201);
});

test('reports each invalid field and the expected value', async () => {
  const { body } = await ask('POST', '/v1/browsers/sessions', {
    key: KEY,
    body: { timeout: '900', browserSettings: { viewport: { width: 1 } } },
  });
  assert.deepEqual(body.details.issues, [
    { path: 'timeout', message: 'is "900"; expected a whole number from 60 to 21600' },
    { path: 'browserSettings.viewport.width', message: 'is 1; expected a whole number from 200 to 3840' },
  ]);
  assert.ok(body.message.includes('timeout is "900"'));
});

test('parses numbers in a query, and refuses invalid numbers', async () => {
  const queries: unknown[] = [];
  const listingServer = await serve({
    sessions: {
      ...SESSIONS,
      list: async (_, query) => {
        queries.push(query);
        return { sessions: [] };
      },
    },
  });
  assert.equal((await listingServer('GET', '/v1/sessions?limit=5&status=RUNNING&other=1', { key: KEY })).status, 200);
  assert.deepEqual(queries, [{ limit: 5, status: 'RUNNING' }]);
  for (const query of ['limit=abc', 'limit=0', 'limit=1001', 'limit=5&limit=6', 'before=x', 'limit=']) {
    const { status, body } = await listingServer('GET', `/v1/browsers/sessions?${query}`, { key: KEY });
    assert.deepEqual([status, body.code], [400, 'invalid_request'], query);
  }
});

test('reports unknown fields in warnings, or refuses them if the caller requests strict handling', async () => {
  const body = { timeOut: 1, browserSettings: { viewprot: {} } };
  const createResponse = await ask('POST', '/v1/browsers/sessions', { key: KEY, body });
  assert.deepEqual(
    createResponse.body.warnings.map(({ code, path }) => [code, path]),
    [
      ['unknown_field', 'timeOut'],
      ['unknown_field', 'browserSettings.viewprot'],
    ],
  );
  const updateResponse = await ask('POST', `/v1/browsers/sessions/${ID}`, { key: KEY, body: { state: 1 } });
  assert.deepEqual([updateResponse.status, updateResponse.body.warnings[0]?.path], [200, 'state']);
  const strictResponse = await ask('POST', '/v1/browsers/sessions', {
    key: KEY,
    body,
    headers: { prefer: 'respond-async, handling=strict' },
  });
  assert.deepEqual(
    [strictResponse.status, strictResponse.body.code, strictResponse.body.details.issues.length],
    [400, 'unknown_field', 2],
  );
});

test('account routes refuse unknown fields', async () => {
  const { status, body } = await ask('POST', '/v1/applications', { key: TOKEN, body: { name: 'a', nmae: 'b' } });
  assert.deepEqual([status, body.code, body.details.issues[0]?.path], [400, 'unknown_field', 'nmae']);
});

// ---- responses -----------------------------------------------------------------------------------------------------

test('a create request returns 201 with a Location header', async () => {
  const { status, headers, body } = await ask('POST', '/v1/browsers/sessions', { key: KEY });
  assert.deepEqual([status, headers.get('location'), body.warnings], [201, `/v1/browsers/sessions/${ID}`, []]);
});

test('a list is returned as a JSON array, and a header contains the position of the next page', async () => {
  const { headers, list } = await ask('GET', '/v1/browsers/sessions', { key: KEY });
  assert.deepEqual([list.length, headers.get('x-next-before')], [1, ID]);
});

test('a resource with a revision has an ETag, and an update applies to the revision in the If-Match header', async () => {
  assert.equal((await ask('GET', `/v1/applications/${APP}`, { key: TOKEN })).headers.get('etag'), '"3"');
  const renameResponse = await ask('PATCH', `/v1/applications/${APP}`, {
    key: TOKEN,
    body: { name: 'New' },
    headers: { 'if-match': '"3"' },
  });
  assert.equal(renameResponse.body.name, 'New "3"');
});

test('a revoke request returns 204, even with the JSON content type that older clients send', async () => {
  for (const headers of [{}, JSON_HEADERS]) {
    const { status, text } = await ask('DELETE', `/v1/account/tokens/${ID}`, { key: TOKEN, headers });
    assert.deepEqual([status, text], [204, '']);
  }
});

test('returns 404 for an id that is not a UUID', async () => {
  for (const path of [
    '/v1/browsers/sessions/x',
    `/v1/browsers/sessions/${ID.slice(1)}`,
    `/v1/sessions/${'x'.repeat(300)}`,
  ]) {
    const { status, body } = await ask('GET', path, { key: KEY });
    assert.deepEqual([status, body.code], [404, 'not_found'], path);
  }
});

const RETRY_CASES: ReadonlyArray<readonly [Error, number, string, string | null]> = [
  [sessionNotRunning(ID, 'COMPLETED'), 409, 'false', null],
  [fault('capacity', 'full'), 503, 'true', '5'],
  [fault('concurrency_limit', 'full'), 429, 'true', '5'],
  [fault('feature_unavailable', 'no'), 422, 'false', null],
  [new Error('a bug'), 500, 'false', null],
];
for (const [error, status, shouldRetry, retryAfter] of RETRY_CASES)
  test(`a write that fails with ${status} has x-should-retry: ${shouldRetry}`, async () => {
    const refusingServer = await serve({
      sessions: { ...SESSIONS, create: () => Promise.reject(error), read: () => Promise.reject(error) },
    });
    const { status: answered, headers } = await refusingServer('POST', '/v1/browsers/sessions', { key: KEY });
    assert.deepEqual(
      [answered, headers.get('x-should-retry'), headers.get('retry-after')],
      [status, shouldRetry, retryAfter],
    );
    const readResponse = await refusingServer('GET', `/v1/browsers/sessions/${ID}`, { key: KEY });
    assert.equal(readResponse.headers.get('x-should-retry'), null);
  });

test('aborts the signal of a request when the caller disconnects', async () => {
  const signalReceived = Promise.withResolvers<AbortSignal>();
  const waitingServer = await serve({
    sessions: {
      ...SESSIONS,
      create: (_caller, _request, { signal }) => {
        signalReceived.resolve(signal);
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
    },
  });
  const request = httpRequest(`${waitingServer.url}/v1/browsers/sessions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}` },
  });
  request.on('error', () => {});
  request.end();
  const signal = await signalReceived.promise;
  const aborted = new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }));
  request.destroy();
  await aborted;
});

// ---- the compatibility mount ---------------------------------------------------------------------------------------

for (const prefix of ['/v1', '/v1/browsers/v1'])
  test(`serves the routes of official clients under ${prefix}`, async () => {
    assert.equal((await ask('POST', `${prefix}/sessions`, { key: KEY, body: {} })).body.region, 'us-west-2');
    assert.equal((await ask('GET', `${prefix}/sessions`, { key: KEY })).list[0]?.region, 'us-west-2');
    const [project] = (await ask('GET', `${prefix}/projects`, { key: KEY })).list;
    assert.deepEqual(
      [project?.id, project?.ownerId, project?.defaultTimeout, project?.concurrency],
      [APP, 'account-1', 3600, 4],
    );
    assert.equal((await ask('GET', `${prefix}/projects/${APP}`, { key: KEY })).body.name, 'Shop');
    assert.equal((await ask('GET', `${prefix}/projects/${ID}`, { key: KEY })).status, 404);
    assert.deepEqual((await ask('GET', `${prefix}/projects/${APP}/usage`, { key: KEY })).body, {
      browserMinutes: 4.5,
      proxyBytes: 0,
    });
  });

test('Stagehand can start and end a session, and the fields that only Stagehand uses are ignored', async () => {
  const requests: SessionRequest[] = [];
  const stagehandServer = await serve({ sessions: stubSessions(requests) });
  const body = { modelName: 'm', browserbaseSessionCreateParams: { keepAlive: true } };
  const { status, body: started } = await stagehandServer('POST', '/v1/sessions/start', { key: KEY, body });
  assert.deepEqual([status, started], [200, { success: true, data: { sessionId: ID, available: false } }]);
  assert.equal(requests[0]?.keepAlive, true);
  const existingSessionResponse = await stagehandServer('POST', '/v1/sessions/start', {
    key: KEY,
    body: { browserbaseSessionID: ID },
  });
  assert.equal(existingSessionResponse.body.data.sessionId, ID);
  assert.deepEqual((await stagehandServer('POST', `/v1/sessions/${ID}/end`, { key: KEY })).body, { success: true });
  assert.equal(requests.length, 1);
});

test('a Stagehand request with a misspelled or misplaced session restriction is refused', async () => {
  const requests: SessionRequest[] = [];
  const readIds: string[] = [];
  const stagehandServer = await serve({
    sessions: {
      ...stubSessions(requests),
      read: async (_, id) => {
        readIds.push(id);
        return VIEW;
      },
    },
  });
  const startSession = (body: object, headers: Record<string, string> = {}) =>
    stagehandServer('POST', '/v1/sessions/start', { key: KEY, body, headers });
  const networkPolicy = { default: 'deny' };
  for (const [body, field] of [
    [{ browserbaseSessionCreateParams: { networkPolicy } }, 'browserSettings.networkPolicy'],
    [{ browserbaseSessionCreateParams: { browserSettings: { allowDomains: [] } } }, 'browserSettings.allowedDomains'],
    [{ networkPolicy }, 'browserSettings.networkPolicy'],
    [{ browserSettings: { networkPolicy } }, 'browserSettings'],
  ] as const) {
    const { status, body: error } = await startSession(body);
    assert.deepEqual([status, error.code], [400, 'invalid_request']);
    assert.ok(error.message.includes(`did you mean browserbaseSessionCreateParams.${field}?`), error.message);
  }
  assert.equal(requests.length, 0);
  const body = { modelName: 'm', verbose: 1, selfHeal: true, browserbaseSessionCreateParams: { keepalive: true } };
  assert.equal((await startSession(body)).status, 200);
  assert.deepEqual(
    requests[0]?.warnings.map(({ path }) => path),
    ['browserbaseSessionCreateParams.keepalive'],
    'the fields of Stagehand itself cause no warning',
  );
  const strictResponse = await startSession(body, { prefer: 'handling=strict' });
  assert.deepEqual([strictResponse.status, strictResponse.body.code], [400, 'unknown_field']);
  await startSession({ browserbaseSessionID: ID.toUpperCase() });
  assert.deepEqual(readIds, [ID]);
});

test('a session that Stagehand starts is placed in the region that the request names', async () => {
  const regions: Array<string | undefined> = [];
  const placingServer = await serve({
    forwarding: {
      ...noForwarding(newId<HostId>(new Date())),
      isAlone: false,
      chooseHost: region => {
        regions.push(region);
        return 'here';
      },
    },
  });
  const body = { browserbaseSessionCreateParams: { region: 'eu-central-1' } };
  assert.equal((await placingServer('POST', '/v1/sessions/start', { key: KEY, body })).status, 200);
  assert.deepEqual(regions, ['eu-central-1']);
});

test('refuses a repeated release with a conflict on the native mount, and accepts a repeated release on the compatibility mount', async () => {
  const endedSessionServer = await serve({
    sessions: {
      ...SESSIONS,
      update: async () => Promise.reject(sessionNotRunning(ID, 'COMPLETED')),
      read: async () => ({ ...VIEW, status: 'COMPLETED', regionAsked: 'eu-central-1' }),
    },
  });
  const releaseRequest = { key: KEY, body: { status: 'REQUEST_RELEASE' } };
  assert.equal((await endedSessionServer('POST', `/v1/browsers/sessions/${ID}`, releaseRequest)).status, 409);
  const releaseResponse = await endedSessionServer('POST', `/v1/sessions/${ID}`, releaseRequest);
  assert.deepEqual(
    [releaseResponse.status, releaseResponse.body.status, releaseResponse.body.region],
    [200, 'COMPLETED', 'eu-central-1'],
  );
  assert.equal(
    (await endedSessionServer('POST', `/v1/sessions/${ID}`, { key: KEY, body: { timeout: 900 } })).status,
    409,
  );
  const nativeResponse = await endedSessionServer('GET', `/v1/browsers/sessions/${ID}`, { key: KEY });
  assert.deepEqual([nativeResponse.body.region, 'regionAsked' in nativeResponse.body], ['local', false]);
});

test('the routes of the compatibility mount do not exist if the mount is disabled', async () => {
  const nativeServer = await serve({ compat: false });
  for (const path of ['/v1/sessions', '/v1/projects', '/v1/browsers/v1/sessions'])
    assert.equal((await nativeServer('GET', path, { key: KEY })).body.code, 'route_not_found');
  assert.equal((await nativeServer('GET', '/v1/browsers/sessions', { key: KEY })).status, 200);
});

test("the Selenium address returns errors in WebDriver's format", async () => {
  for (const [method, path] of [
    ['GET', ''],
    ['POST', '/session'],
    ['DELETE', '/session/a/b'],
  ] as const) {
    const raw = method === 'GET' ? {} : { raw: '<x>', headers: { 'content-type': 'text/xml' } };
    const { status, body } = await ask(method, `/v1/browsers/webdriver${path}`, raw);
    assert.deepEqual([status, body.value.error, body.value.stacktrace], [501, 'unsupported operation', '']);
  }
});

// ---- connect -------------------------------------------------------------------------------------------------------

test('the connect address responds with 426 to requests without an upgrade', async () => {
  const { status, body } = await ask('GET', `/v1/browsers/sessions/${ID}/connect?signingKey=k`);
  assert.deepEqual([status, body.code], [426, 'upgrade_required']);
});

test('the discovery address accepts a signing key or an API key, and may end with a slash', async () => {
  const receivedCredentials: unknown[] = [];
  const version = { Browser: 'Chrome/1', 'Protocol-Version': '1.3', webSocketDebuggerUrl: 'ws://a' };
  const discoveryServer = await serve({
    discover: async (id, { signingKey, authorization, apiKey }) => {
      receivedCredentials.push([id, signingKey, authorization, apiKey]);
      return version;
    },
  });
  for (const slash of ['', '/'])
    assert.deepEqual(
      (await discoveryServer('GET', `/v1/browsers/sessions/${ID}/connect/json/version${slash}?signingKey=k_1`)).body,
      version,
    );
  await discoveryServer('GET', `/v1/browsers/sessions/${ID}/connect/json/version`, {
    headers: { 'x-bb-api-key': 'bak_1' },
  });
  assert.deepEqual(receivedCredentials, [
    [ID, 'k_1', undefined, undefined],
    [ID, 'k_1', undefined, undefined],
    [ID, undefined, undefined, 'bak_1'],
  ]);
});

// ---- the service itself --------------------------------------------------------------------------------------------

test('serves health and the landing page, but neither readiness nor metrics', async () => {
  assert.deepEqual((await ask('GET', '/healthz')).body, { status: 'ok' });
  for (const path of ['/readyz', '/metrics']) assert.equal((await ask('GET', path)).status, 404, path);
  assert.deepEqual((await ask('GET', '/')).body, {
    name: 'Berth',
    version: '0.1.0',
    docs: '/docs',
    openapi: '/openapi.yaml',
  });
  const page = await ask('GET', '/', { headers: { accept: 'text/html,*/*' } });
  assert.match(page.text, /^<!doctype html>/);
});

test('measures requests by operation and status', async () => {
  const metrics = new Registry();
  const measuredServer = await serve({ metrics });
  await measuredServer('GET', '/v1/browsers/sessions', { key: KEY });
  await measuredServer('GET', '/v1/browsers/sessions');
  await measuredServer('GET', '/nowhere');
  const text = await metrics.metrics();
  for (const labels of [
    'operation="listSessions",status="200"',
    'operation="listSessions",status="401"',
    'operation="none",status="404"',
  ])
    assert.ok(text.includes(`berth_http_request_duration_seconds_count{${labels}} 1`), labels);
});

test('each operation logs a line at its start and a line at its end, without secrets', async () => {
  logLines.length = 0;
  await ask('GET', `/v1/browsers/sessions/${ID}/connect?signingKey=k_secret`, {
    headers: { 'x-request-id': 'trace-log-1' },
  });
  await ask('GET', '/v1/browsers/sessions', { key: KEY, headers: { 'x-request-id': 'trace-log-2' } });
  await ask('GET', '/healthz');
  const of = (id: string) => logLines.filter(line => line.requestId === id);
  assert.deepEqual(
    of('trace-log-1').map(({ event, status, code }) => [event, status, code]),
    [
      ['connectSession.begin', undefined, undefined],
      ['connectSession.end', 426, 'upgrade_required'],
    ],
  );
  const [, end] = of('trace-log-2');
  assert.deepEqual([end?.event, end?.status, end?.applicationId, end?.keyId], ['listSessions.end', 200, APP, 'key-1']);
  assert.equal(typeof end?.durationMs, 'number');
  assert.ok(!/k_secret|the-agent-key/.test(JSON.stringify(logLines)));
});

// ---- the API reference ---------------------------------------------------------------------------------------------

test('the OpenAPI document is the same at every address and lists every operation once', async () => {
  const yamlResponse = await ask('GET', '/openapi.yaml');
  assert.equal((await ask('GET', '/docs/openapi.yaml')).text, yamlResponse.text);
  const { body } = await ask('GET', '/v1/browsers/openapi.json');
  assert.deepEqual(parse(yamlResponse.text), body);
  assert.equal(body.openapi, '3.1.0');
  const ids = Object.values(body.paths).flatMap(path => Object.values(Object(path)).map(it => Object(it).operationId));
  assert.equal(new Set(ids).size, ids.length);
  for (const id of OPERATION_IDS) assert.ok(ids.includes(id), id);
  const references = [...yamlResponse.text.matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name ?? '');
  for (const name of references) assert.ok(name in body.components.schemas, name);
});

test('responds with 404 and an explanation if the docs site has not been built', async () => {
  const { status, body } = await ask('GET', '/docs/api');
  assert.deepEqual([status, body.code], [404, 'route_not_found']);
  assert.match(body.message, /has not been built/);
});

test('responds with 304 for an unchanged document', async () => {
  const { headers } = await ask('GET', '/openapi.yaml');
  const secondResponse = await ask('GET', '/openapi.yaml', { headers: { 'if-none-match': headers.get('etag') ?? '' } });
  assert.deepEqual([secondResponse.status, secondResponse.text], [304, '']);
});

// ---- opening and closing -------------------------------------------------------------------------------------------

test('the error for an address that is in use or not on this machine names the address and the setting', async () => {
  const port = Number(new URL(ask.url).port);
  await assert.rejects(
    serve({ listen: { host: '127.0.0.1', port } }),
    new RegExp(`127\\.0\\.0\\.1:${port} is in use by another program\\. Choose .* BERTH_LISTEN\\.$`),
  );
  await assert.rejects(
    serve({ listen: { host: '198.51.100.1', port: 0 } }),
    /198\.51\.100\.1:0 cannot be used .*EADDRNOTAVAIL.*\. Choose .* BERTH_LISTEN\.$/,
  );
});

test('close does not wait for idle connections', async () => {
  const closingServer = await serve();
  await closingServer('GET', '/healthz');
  const idle = connect(Number(new URL(closingServer.url).port), '127.0.0.1');
  await new Promise(resolve => idle.once('connect', resolve));
  const cut = new Promise(resolve => idle.once('close', resolve));
  await closingServer.close();
  await cut;
});

test('close answers requests that have arrived but have not been read', async () => {
  const closingServer = await serve();
  const port = Number(new URL(closingServer.url).port);
  const HEADERS = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const accepted = once(closingServer.server, 'connection');
  const unused = connect(port, '127.0.0.1');
  await accepted;
  const used = connect(port, '127.0.0.1');
  used.write(HEADERS);
  await once(used, 'data');
  const responses = Promise.all([text(unused), text(used)]);
  unused.write(HEADERS);
  used.write(HEADERS);
  const closed = closingServer.close(); // In the same turn, so that the server has read neither request.
  for (const response of await responses)
    assert.match(response, /^HTTP\/1\.1 200 OK\r\n(?:.+\r\n)*connection: close\r\n/i);
  await closed;
});

/** Serves a session whose read waits: `isRead` resolves when the read has begun, and `view` is its result. */
async function serveWaitingRead() {
  const isRead = Promise.withResolvers<void>();
  const view = Promise.withResolvers<SessionView>();
  const read = () => {
    isRead.resolve();
    return view.promise;
  };
  return { closingServer: await serve({ sessions: { ...SESSIONS, read } }), isRead: isRead.promise, view };
}

for (const sender of ['a client', 'another host'])
  test(`close waits for a request of ${sender} that is in progress, and then closes its connection`, async () => {
    const { closingServer, isRead, view } = await serveWaitingRead();
    const port = await claimFreePort();
    const peers = await listenForPeers(closingServer.server, { host: '127.0.0.1', port }, undefined, systemClock);
    const url = sender === 'another host' ? `http://127.0.0.1:${port}` : closingServer.url;
    const response = fetch(`${url}/v1/browsers/sessions/${ID}`, { headers: { authorization: `Bearer ${KEY}` } });
    await isRead;
    await peers.close();
    let isClosed = false;
    const closed = closingServer.close().then(() => {
      isClosed = true;
    });
    await setTimeout(100); // By then, the listening sockets are closed.
    assert.ok(!isClosed);
    view.resolve(VIEW);
    const { status, headers } = await response;
    assert.deepEqual([status, headers.get('connection')], [200, 'close']);
    await closed;
  });

test('close sends the whole of a large response to a client that reads slowly', async () => {
  const { closingServer, isRead, view } = await serveWaitingRead();
  const socket = connect(Number(new URL(closingServer.url).port), '127.0.0.1');
  socket.write(`GET /v1/browsers/sessions/${ID} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n\r\n`);
  await isRead;
  const closed = closingServer.close();
  await setTimeout(100); // By then, the listening sockets are closed.
  const note = 'x'.repeat(8_000_000);
  view.resolve({ ...VIEW, userMetadata: { note } });
  await setTimeout(300); // The client reads nothing meanwhile.
  assert.ok((await text(socket)).includes(`"note":"${note}"`));
  await closed;
});

test('close does not fail if another host resets a connection in the meantime', async () => {
  const { closingServer, isRead } = await serveWaitingRead();
  const port = await claimFreePort();
  const peers = await listenForPeers(closingServer.server, { host: '127.0.0.1', port }, undefined, systemClock);
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET /v1/browsers/sessions/${ID} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n\r\n`);
  await isRead;
  await peers.close();
  const closed = closingServer.close();
  await setTimeout(100); // By then, the listening sockets are closed.
  socket.resetAndDestroy();
  await closed;
});

/** Connects `count` times and sends a request on each connection. Tells when all are sent, and returns the responses. */
const CLIENTS_SCRIPT = `
  const { workerData: { port, count, sent }, parentPort } = require('node:worker_threads');
  const { connect } = require('node:net');
  const { text } = require('node:stream/consumers');
  const open = () => new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n', () => resolve(socket)));
  });
  Promise.all(Array.from({ length: count }, open)).then(async sockets => {
    Atomics.store(sent, 0, 1);
    Atomics.notify(sent, 0);
    parentPort.postMessage(await Promise.all(sockets.map(socket => text(socket).catch(String))));
  });`;

/** How long the main thread of the test is blocked at most. */
const BLOCKED_MS_MAX = 20_000;

test('close answers requests on connections that have not been accepted', async () => {
  const closingServer = await serve();
  const sent = new Int32Array(new SharedArrayBuffer(4));
  const workerData = { port: Number(new URL(closingServer.url).port), count: 10, sent };
  const clients = new Worker(CLIENTS_SCRIPT, { eval: true, workerData });
  const received = once(clients, 'message');
  // Blocks this thread, so that the server accepts nothing meanwhile.
  assert.notEqual(Atomics.wait(sent, 0, 0, BLOCKED_MS_MAX), 'timed-out');
  await closingServer.close();
  const [responses]: string[][] = await received;
  assert.equal(responses?.length, 10);
  for (const response of responses) assert.match(response, /^HTTP\/1\.1 200 OK\r\n(?:.+\r\n)*connection: close\r\n/i);
});
