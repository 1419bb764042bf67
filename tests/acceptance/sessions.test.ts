import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorBody, Warning } from '../../contract/common.ts';
import type { SessionEventPage } from '../../contract/events.ts';
import type { Session } from '../../contract/sessions.ts';
import { createContext } from '../harness/contexts.ts';
import { TEST_ENGINE } from '../harness/engine.ts';
import { findSessionLeftovers } from '../harness/leftovers.ts';
import { liftLimits } from '../harness/limits.ts';
import { createFaultyChromium } from '../harness/moody-chromium.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const chromium = await createFaultyChromium();
const server = await startServer({
  env: { BERTH_CHROMIUM: chromium.path, BERTH_REGION: 'hafen,kai', BERTH_SLOTS: '8' },
});
await liftLimits(server);

const SESSIONS = '/v1/browsers/sessions';
const UNKNOWN_ID = '01a1fa50-5319-7450-a6b3-c787ada50631';
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const create = <Body = CreatedSession>(body?: object, headers: Record<string, string> = {}) =>
  server.api<Body>('POST', SESSIONS, { body, headers });
const list = (query: string) => server.api<Session[]>('GET', `${SESSIONS}?${query}`);
const update = <Body = Session>(id: string, body: object) => server.api<Body>('POST', `${SESSIONS}/${id}`, { body });

/** Runs the work with a session that is released afterwards. */
async function withSession<T>(body: object, work: (session: CreatedSession) => Promise<T>): Promise<T> {
  const session = await server.createSession(body);
  try {
    return await work(session);
  } finally {
    await server.release(session.id).catch(() => {});
  }
}

test('creating a session without a body returns 201, a Location header and a running session with default settings', async () => {
  const { status, headers, body: session } = await create();
  assert.equal(status, 201);
  assert.equal(headers.location, `${SESSIONS}/${session.id}`);
  assert.match(session.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  for (const time of [session.createdAt, session.updatedAt, session.startedAt, session.expiresAt])
    assert.match(time, TIME);
  assert.equal(Date.parse(session.expiresAt) - Date.parse(session.createdAt), 3_600_000);
  assert.equal(
    session.connectUrl,
    `${server.url.replace('http', 'ws')}${SESSIONS}/${session.id}/connect?signingKey=${session.signingKey}`,
  );
  assert.ok(session.signingKey.length >= 24, 'at least 128 bits');
  assert.equal(session.seleniumRemoteUrl, `${server.url}/v1/browsers/webdriver`);
  const { id, createdAt, updatedAt, startedAt, expiresAt, connectUrl, signingKey, seleniumRemoteUrl, keyId, ...rest } =
    session;
  assert.match(keyId ?? '', /^[0-9a-f-]{36}$/);
  assert.deepEqual(rest, {
    projectId: server.applicationId,
    status: 'RUNNING',
    proxyBytes: 0,
    keepAlive: false,
    region: 'hafen',
    userMetadata: {},
    warnings: [],
  });
  await server.release(id);
});

test('creating a session with an empty JSON body succeeds', async () => {
  const { status, body } = await server.api<CreatedSession>('POST', SESSIONS, {
    body: '',
    headers: { 'content-type': 'application/json' },
  });
  assert.equal(status, 201);
  await server.release(body.id);
});

test('creating a session accepts every supported field, and warns about fields without effect', async () => {
  const { status, body } = await create({
    projectId: server.applicationId,
    timeout: 90,
    keepAlive: true,
    region: 'kai',
    userMetadata: { run: 'all', nested: { deep: 'value', number: 1, yes: true } },
    proxies: false,
    proxySettings: { caCertificates: [] },
    extensionIds: [],
    browserSettings: {
      viewport: { width: 1288, height: 711 },
      recordSession: true,
      logSession: true,
      allowedDomains: [],
      ignoreCertificateErrors: true,
      blockAds: false,
      enablePdfViewer: true,
      solveCaptchas: true,
      captchaImageSelector: '#image',
      captchaInputSelector: '#input',
      verified: false,
      fingerprint: {},
      timezoneId: 'Europe/Berlin',
      locale: 'de-DE',
      userAgent: 'tester',
      geolocation: { latitude: 53.5, longitude: 10 },
      maskInputs: 'all',
      egressBytes: 1_000_000_000,
      takeover: 'refuse',
    },
  });
  assert.equal(status, 201);
  assert.equal(Date.parse(body.expiresAt) - Date.parse(body.createdAt), 90_000);
  assert.equal(body.keepAlive, true);
  assert.equal(body.region, 'kai');
  assert.deepEqual(body.userMetadata, { run: 'all', nested: { deep: 'value', number: 1, yes: true } });
  const warningCodes = new Map((body.warnings ?? []).map(({ path, code }) => [path, code]));
  const settingWarnings = (code: string, ...names: string[]) =>
    names.map(name => [`browserSettings.${name}`, code] as const);
  assert.deepEqual(
    [...warningCodes].sort(),
    [
      ...settingWarnings('captcha_not_supported', 'solveCaptchas', 'captchaImageSelector', 'captchaInputSelector'),
      ...settingWarnings('ignored', 'fingerprint'),
    ].sort(),
  );
  for (const { message } of body.warnings ?? []) assert.ok(message.length > 10, message);
  await server.release(body.id);
});

test('reading a session returns the allowed domains, the network policy and the context that were set', async () => {
  const { id: contextId } = await createContext(server);
  const { id } = await server.createSession({
    browserSettings: {
      allowedDomains: ['Example.com', '*.example.org'],
      networkPolicy: { default: 'deny', allow: ['example.com'], subresources: false },
      context: { id: contextId, persist: true },
    },
  });
  const { browserSettings = {} } = await server.read(id);
  assert.deepEqual(browserSettings.allowedDomains, ['example.com', 'example.org']);
  assert.deepEqual(browserSettings.networkPolicy, {
    ...{ allow: ['example.com'], deny: [], default: 'deny', subresources: false },
  });
  assert.deepEqual(browserSettings.context, { id: contextId, persist: true, exclusive: false });
  await server.release(id);
});

test('settings sent with their default values cause no warning', () =>
  withSession(
    { recordSession: false, viewport: { width: 1280 }, browserSettings: { maskInputs: 'password' } },
    async session => assert.deepEqual(session.warnings, []),
  ));

test('a region that official clients send is accepted, and the response contains the actual region and a warning', () =>
  withSession({ region: 'us-east-1' }, async session => {
    assert.equal(session.region, 'hafen');
    assert.deepEqual(
      session.warnings?.map(({ code, path }) => [code, path]),
      [['region_not_local', 'region']],
    );
  }));

test('creating a session causes a warning for each unknown field, at every depth', () =>
  withSession(
    { keepalive: true, '\ud800': 1, browserSettings: { viewPort: {}, viewport: { depth: 3 } } },
    async session => {
      assert.equal(session.keepAlive, false);
      const readResponse = await server.api<CreatedSession>('GET', `/v1/browsers/sessions/${session.id}`);
      assert.deepEqual(readResponse.body.warnings, session.warnings, 'they are shown with the session');
      const { body: events } = await server.api<SessionEventPage>('GET', `/v1/browsers/sessions/${session.id}/events`);
      assert.deepEqual(events.data[0]?.detail.warnings, session.warnings, 'and with its first event');
      const unknown = (session.warnings ?? []).filter(({ code }: Warning) => code === 'unknown_field');
      assert.deepEqual(unknown.map(({ path }) => path).sort(), [
        'browserSettings.viewPort',
        'browserSettings.viewport.depth',
        'keepalive',
        '\ufffd',
      ]);
    },
  ));

test('a create with an unknown field is refused with 400 and creates no session if the caller asks for strict handling', async () => {
  const countBefore = (await list('')).body.length;
  const { status, body } = await create<ErrorBody>({ keepalive: true }, { prefer: 'handling=strict' });
  assert.equal(status, 400);
  assert.equal(body.code, 'unknown_field');
  assert.match(body.message, /keepalive/);
  assert.equal((await list('')).body.length, countBefore);
});

const MISPLACED_FIELDS: ReadonlyArray<readonly [path: string, meant: string | undefined, body: object]> = [
  ['networkPolicy', 'browserSettings.networkPolicy', { networkPolicy: { default: 'deny' } }],
  ['browserSettings.network_policy', 'browserSettings.networkPolicy', { browserSettings: { network_policy: {} } }],
  ['browserSettings.proxies', 'proxies', { browserSettings: { proxies: true } }],
  ['proxy', 'proxies', { proxy: { server: 'http://127.0.0.1:1' } }],
  ['alowedDomains', 'browserSettings.allowedDomains', { alowedDomains: ['a.test'] }],
  ['recordsession', 'browserSettings.recordSession', { recordsession: false }],
  [
    'browserSettings.networkPolicy.alow',
    'browserSettings.networkPolicy.allow',
    { browserSettings: { networkPolicy: { alow: [] } } },
  ],
  ['browserSettings.networkPolicy.block', undefined, { browserSettings: { networkPolicy: { block: ['a.test'] } } }],
];

for (const [path, meant, body] of MISPLACED_FIELDS)
  test(`a create with the misplaced or misspelled field ${path} is refused with 400 and creates nothing`, async () => {
    const countBefore = (await list('')).body.length;
    const { status, body: error } = await create<ErrorBody>(body);
    assert.deepEqual([status, error.code], [400, 'invalid_request']);
    assert.ok(
      error.message.includes(meant ? `There is no field ${path}; did you mean ${meant}?` : path),
      error.message,
    );
    assert.equal((await list('')).body.length, countBefore);
  });

const PROTECTIVE_SETTINGS: ReadonlyArray<readonly [string, object]> = [
  ['browserSettings.blockAds', { browserSettings: { blockAds: true } }],
  ['proxies.0', { proxies: true }],
  [
    'proxies.1',
    {
      proxies: [
        { type: 'none', domainPattern: 'a' },
        { type: 'browserbase', geolocation: { country: 'DE' } },
      ],
    },
  ],
  ['browserSettings.verified', { browserSettings: { verified: true } }],
  ['browserSettings.advancedStealth', { browserSettings: { advancedStealth: true } }],
];

for (const [field, body] of PROTECTIVE_SETTINGS)
  test(`a create with an unavailable setting that would protect the caller is refused: ${JSON.stringify(body)}`, async () => {
    const { status, body: error, headers } = await create<ErrorBody>(body);
    assert.equal(status, 422);
    assert.equal(error.code, 'feature_unavailable');
    assert.deepEqual(error.details, { field });
    assert.equal(headers['x-should-retry'], 'false');
  });

const INVALID_VALUES: ReadonlyArray<readonly [string, object]> = [
  ['timeout', { timeout: 59 }],
  ['timeout', { timeout: 21_601 }],
  ['timeout', { timeout: 90.5 }],
  ['timeout', { timeout: '3600' }],
  ['timeout', { timeout: null }],
  ['keepAlive', { keepAlive: 'true' }],
  ['keepAlive', { keepAlive: 1 }],
  ['region', { region: 'the-moon' }],
  ['userMetadata', { userMetadata: 'text' }],
  ['userMetadata.tags', { userMetadata: { tags: ['a'] } }],
  ['userMetadata', { userMetadata: { long: 'x'.repeat(503) } }],
  ['browserSettings.viewport.width', { browserSettings: { viewport: { width: 199 } } }],
  ['browserSettings.viewport.height', { browserSettings: { viewport: { height: 2161 } } }],
  ['browserSettings.os', { browserSettings: { os: 'linux' } }],
  ['browserSettings', { browserSettings: [] }],
  ['extensionId', { extensionId: 'not-an-id' }],
  ['proxies', { proxies: 'yes' }],
];

for (const [path, body] of INVALID_VALUES)
  test(`a create with an invalid value is refused, and the error contains the path: ${JSON.stringify(body).slice(0, 70)}`, async () => {
    const { status, body: error } = await create<ErrorBody>(body);
    assert.equal(status, 400, JSON.stringify(error));
    assert.equal(error.code, 'invalid_request');
    const issues: Array<{ path: string; message: string }> = Object(error.details).issues;
    assert.deepEqual(
      issues.map(issue => issue.path),
      [path],
    );
    assert.ok(issues.every(issue => issue.message.length > 5));
  });

test('metadata of exactly 512 characters is accepted', () =>
  withSession({ userMetadata: { long: 'x'.repeat(501) } }, async ({ userMetadata }) =>
    assert.equal(JSON.stringify(userMetadata).length, 512),
  ));

test('a setting that is sent in two places is accepted with equal values and refused with different values', async () => {
  await withSession(
    { viewport: { width: 800 }, browserSettings: { viewport: { width: 800, height: 720 } } },
    async () => {},
  );
  const { status, body } = await create<ErrorBody>({ recordSession: true, browserSettings: { recordSession: false } });
  assert.equal(status, 400);
  assert.equal(body.code, 'conflicting_fields');
  assert.deepEqual(body.details, { paths: ['recordSession', 'browserSettings.recordSession'] });
});

test('a create with the projectId of another application is refused with 403', async () => {
  const { status, body } = await create<ErrorBody>({ projectId: UNKNOWN_ID });
  assert.equal(status, 403);
  assert.equal(body.code, 'project_mismatch');
});

test('a read of a running session returns its connect address, but a list and an update do not', () =>
  withSession({ userMetadata: { look: 'here' } }, async createdSession => {
    const read = await server.read(createdSession.id);
    assert.equal(read.connectUrl, createdSession.connectUrl);
    assert.equal(read.signingKey, createdSession.signingKey);
    assert.deepEqual(read.uploads, []);
    assert.deepEqual(read.warnings, []);
    const [listedSession] = (await list(`q=${encodeURIComponent("user_metadata['look']:'here'")}`)).body;
    const updatedSession = (await update(createdSession.id, {})).body;
    for (const session of [listedSession, updatedSession]) {
      assert.equal(session?.id, createdSession.id);
      for (const field of ['connectUrl', 'signingKey', 'seleniumRemoteUrl', 'uploads', 'warnings'])
        assert.ok(!(field in Object(session)), field);
    }
    const endedSession = await server.release(createdSession.id);
    for (const session of [endedSession, await server.read(createdSession.id)])
      for (const field of ['connectUrl', 'signingKey', 'seleniumRemoteUrl']) assert.ok(!(field in session), field);
  }));

test('sessions can be found by strings in their metadata', async () => {
  const mark = crypto.randomUUID();
  const made = [
    await server.createSession({ userMetadata: { mark, who: { name: "O'Neil\\" }, count: 7 } }),
    await server.createSession({ userMetadata: { mark, who: { name: 'other' } } }),
  ];
  await Promise.all(made.map(({ id }) => server.release(id)));
  const [first, second] = made.map(({ id }) => id);
  const findIds = async (q: string) => (await list(`q=${encodeURIComponent(q)}`)).body.map(({ id }) => id);
  assert.deepEqual(await findIds(`user_metadata['mark']:'${mark}'`), [second, first]);
  assert.deepEqual(await findIds(`user_metadata['who']['name']:'O\\'Neil\\\\' AND user_metadata['mark']:'${mark}'`), [
    first,
  ]);
  assert.deepEqual(await findIds(`user_metadata['mark']:'${mark}' AND user_metadata['count']:'7'`), []);
  assert.deepEqual(await findIds(`user_metadata['mark']:'${mark.slice(1)}'`), []);
  assert.deepEqual(await findIds(`user_metadata['who']:'other'`), []);
});

test('sessions can be found by plain words in the id, the metadata and the end reason', async () => {
  const mark = crypto.randomUUID().slice(0, 13);
  const made = [
    await server.createSession({ userMetadata: { mark, customer: 'Müller & Söhne', note: '100%_"done"\\' } }),
    await server.createSession({ userMetadata: { mark, who: { name: 'Other' } } }),
  ];
  const [first, second] = made.map(({ id }) => id);
  await server.release(first ?? '');
  const findIds = async (q: string, more = '') =>
    (await list(`q=${encodeURIComponent(q)}${more}`)).body.map(({ id }) => id);
  assert.deepEqual(await findIds(mark), [second, first]);
  assert.deepEqual(await findIds(`  ${mark.toUpperCase()}  söhne `), [first]);
  assert.deepEqual(await findIds(`${mark} who`), [second]);
  assert.deepEqual(await findIds(`${mark} released`), [first]);
  for (const word of ['100%_', '"done"', '\\']) assert.deepEqual(await findIds(`${mark} ${word}`), [first], word);
  for (const word of ['%', '1_0', 'leased', "'", '{}', '<x>'])
    assert.ok(!(await findIds(`${mark} who ${word}`)).length, word);
  assert.deepEqual(await findIds(second?.slice(0, 20) ?? '', '&limit=1'), [second]);
  assert.deepEqual(await findIds(mark, '&status=RUNNING'), [second]);
  assert.deepEqual(await findIds(mark, '&endReason=released,crashed'), [first]);
  assert.equal((await server.api('GET', `${SESSIONS}?endReason=bored`)).status, 400);
  const longQueryRefusal = await server.api('GET', `${SESSIONS}?q=${encodeURIComponent('a b c d e f g h i j k')}`);
  assert.deepEqual([longQueryRefusal.status, longQueryRefusal.body.code], [400, 'invalid_query']);
  await server.release(second ?? '');
});

test('reading a session returns its settings, and sessions can be filtered by key and creation time', async () => {
  const { id } = await server.createSession({ browserSettings: { viewport: { width: 900 }, maskInputs: 'all' } });
  const session = await server.read(id);
  assert.deepEqual(session.browserSettings, {
    ...{
      engine: TEST_ENGINE,
      ignoreCertificateErrors: false,
      enablePdfViewer: false,
      blockAds: false,
      recordSession: true,
      logSession: true,
    },
    ...{ maskInputs: 'all', takeover: 'queue', viewport: { width: 900, height: 720 } },
  });
  const findIds = async (query: string) => (await list(query)).body.map(one => one.id);
  const at = (time: number): string => encodeURIComponent(new Date(time).toISOString());
  const createdAtMs = Date.parse(session.createdAt);
  assert.ok((await findIds(`keyId=${session.keyId}`)).includes(id));
  assert.deepEqual(await findIds(`keyId=${UNKNOWN_ID}`), []);
  assert.ok((await findIds(`createdAfter=${at(createdAtMs)}&createdBefore=${at(createdAtMs + 1)}`)).includes(id));
  assert.ok(!(await findIds(`createdBefore=${at(createdAtMs)}`)).includes(id));
  assert.ok(!(await findIds(`createdAfter=${at(createdAtMs + 1)}`)).includes(id));
  for (const invalidTime of ['2016-12-31T23:59:60Z', '2026-09-24T10:15:30Z[UTC]']) {
    const refusal = await server.api('GET', `${SESSIONS}?createdAfter=${encodeURIComponent(invalidTime)}`);
    assert.deepEqual([refusal.status, refusal.body.code], [400, 'invalid_request'], refusal.text);
    assert.match(refusal.body.message, /a time like/);
  }
  const blankQueryRefusal = await server.api('GET', `${SESSIONS}?q=%20`);
  assert.deepEqual([blankQueryRefusal.status, blankQueryRefusal.body.code], [400, 'invalid_query']);
  await server.release(id);
});

for (const q of [
  'user_metadata',
  "metadata['a']:'b'",
  "user_metadata['a']:b",
  "user_metadata['a']:'b",
  "user_metadata['a']:'b' OR user_metadata['a']:'c'",
  "user_metadata['a']:'b'; DROP TABLE sessions",
])
  test(`an invalid metadata filter is refused: ${q}`, async () => {
    const { status, body } = await server.api('GET', `${SESSIONS}?q=${encodeURIComponent(q)}`);
    assert.equal(status, 400);
    assert.equal(body.code, 'invalid_query');
    assert.match(body.message, /position \d+/);
  });

test('sessions are listed newest first, and each page of the list except the last has a cursor for the next page', async () => {
  const mark = crypto.randomUUID();
  const ids: string[] = [];
  for (let count = 0; count < 3; count++) {
    const { id } = await server.createSession({ userMetadata: { mark } });
    ids.unshift(id);
    await server.release(id);
  }
  const q = `q=${encodeURIComponent(`user_metadata['mark']:'${mark}'`)}`;
  const firstResponse = await list(`${q}&limit=2`);
  assert.deepEqual(
    firstResponse.body.map(({ id }) => id),
    ids.slice(0, 2),
  );
  assert.equal(firstResponse.headers['x-next-before'], ids[1]);
  const secondResponse = await list(`${q}&limit=2&before=${ids[1]}`);
  assert.deepEqual(
    secondResponse.body.map(({ id }) => id),
    ids.slice(2),
  );
  assert.equal(secondResponse.headers['x-next-before'], undefined);
  assert.deepEqual(
    (await list(q)).body.map(({ id }) => id),
    ids,
  );
});

test('sessions can be listed by status', () =>
  withSession({}, async ({ id }) => {
    const ids = async (status: string) => (await list(`status=${status}`)).body.map(session => session.id);
    assert.ok((await ids('RUNNING')).includes(id));
    assert.ok((await ids('COMPLETED,RUNNING')).includes(id));
    assert.ok(!(await ids('COMPLETED')).includes(id));
    assert.deepEqual(await ids('PENDING'), []);
  }));

for (const query of [
  'status=running',
  'status=RUNNING,SLEEPING',
  'limit=0',
  'limit=1001',
  'limit=ten',
  'limit=1&limit=2',
  'before=me',
])
  test(`an invalid list query is refused: ${query}`, async () => {
    const { status, body } = await server.api('GET', `${SESSIONS}?${query}`);
    assert.equal(status, 400);
    assert.equal(body.code, 'invalid_request');
  });

test('an update changes the metadata and the time limit of a running session, and keeps omitted fields', () =>
  withSession({ timeout: 600, userMetadata: { a: '1' } }, async ({ id, createdAt }) => {
    assert.deepEqual((await update(id, { userMetadata: { b: '2' } })).body.userMetadata, { b: '2' });
    const extendedSession = (await update(id, { timeout: 1200 })).body;
    assert.equal(Date.parse(extendedSession.expiresAt) - Date.parse(createdAt), 1_200_000);
    assert.deepEqual(extendedSession.userMetadata, { b: '2' });
    const unchangedSession = (await update(id, {})).body;
    assert.equal(unchangedSession.expiresAt, extendedSession.expiresAt);
    assert.equal(unchangedSession.status, 'RUNNING');
    for (const bad of [{ status: 'COMPLETED' }, { timeout: 30 }, { userMetadata: { list: [] } }, { timeout: '600' }]) {
      const refusal = await update<ErrorBody>(id, bad);
      assert.equal(refusal.status, 400, JSON.stringify(bad));
      assert.equal(refusal.body.code, 'invalid_request');
    }
    assert.equal((await update<ErrorBody>(id, { projectId: UNKNOWN_ID })).body.code, 'project_mismatch');
    assert.deepEqual((await server.read(id)).userMetadata, { b: '2' });
  }));

test('the response to a release is sent after the browser has ended', async () => {
  const { id } = await server.createSession();
  assert.notDeepEqual(
    findSessionLeftovers(server.dataDir).filter(left => left.includes(id)),
    [],
    'the check for leftovers finds a running session',
  );
  const endedSession = await server.release(id);
  assert.equal(endedSession.status, 'COMPLETED');
  assert.equal(endedSession.endReason, 'released');
  assert.match(endedSession.endedAt ?? '', TIME);
  const left = findSessionLeftovers(server.dataDir).filter(each => each.includes(id));
  // The session's folder was moved to `trash`, and may remain there for a moment.
  assert.deepEqual(
    left.filter(each => !each.startsWith('folder trash/')),
    [],
  );
  await eventually(
    'the leftovers of the session to be removed',
    () => findSessionLeftovers(server.dataDir).filter(each => each.includes(id)),
    each => each.length === 0,
  );
});

test('a second release is refused because the session is not running, except on the compatibility mount', async () => {
  const { id } = await server.createSession();
  await server.release(id);
  const releaseRefusal = await update<ErrorBody>(id, { status: 'REQUEST_RELEASE' });
  assert.equal(releaseRefusal.status, 409);
  assert.equal(releaseRefusal.body.code, 'session_not_running');
  assert.deepEqual(releaseRefusal.body.details, { status: 'COMPLETED' });
  assert.equal(releaseRefusal.headers['x-should-retry'], 'false');
  assert.equal((await update<ErrorBody>(id, { userMetadata: {} })).status, 409);
  for (const mount of ['/v1', '/v1/browsers/v1']) {
    const { status, body } = await server.api<Session>('POST', `${mount}/sessions/${id}`, {
      body: { status: 'REQUEST_RELEASE' },
    });
    assert.equal(status, 200);
    assert.equal(body.status, 'COMPLETED');
  }
});

test('ten concurrent release requests end a session only once', async () => {
  const { id } = await server.createSession();
  const responses = await Promise.all(Array.from({ length: 10 }, () => update(id, { status: 'REQUEST_RELEASE' })));
  for (const { status, body } of responses) assert.ok(status === 409 || body.status === 'COMPLETED', `${status}`);
  const ends = new Set(responses.filter(({ status }) => status === 200).map(({ body }) => body.endedAt));
  assert.equal(ends.size, 1);
});

test('releasing a session while it is starting cancels the start', async () => {
  chromium.setBehavior('hangs');
  const mark = crypto.randomUUID();
  const pendingCreate = create({ userMetadata: { mark } });
  try {
    const q = encodeURIComponent(`user_metadata['mark']:'${mark}'`);
    const [row] = await eventually(
      'the row of the session',
      async () => (await list(`q=${q}`)).body,
      ({ length }) => length === 1,
    );
    assert.equal(row?.status, 'PENDING');
    assert.equal(row.startedAt, row.createdAt);
    const updateResponse = await update<ErrorBody>(row.id, { userMetadata: {} });
    assert.equal(updateResponse.status, 409, 'a starting session can only be released');
    const releaseResponse = await update(row.id, { status: 'REQUEST_RELEASE', userMetadata: { done: 'yes' } });
    assert.equal(releaseResponse.status, 200);
    assert.equal(releaseResponse.body.status, 'COMPLETED');
    assert.equal(releaseResponse.body.endReason, 'released');
    const createResponse = await pendingCreate;
    assert.equal(createResponse.status, 201);
    assert.equal(createResponse.body.id, row.id);
    assert.equal(createResponse.body.status, 'COMPLETED');
    assert.ok(!('connectUrl' in createResponse.body));
  } finally {
    chromium.setBehavior('well');
  }
  await server.waitUntilSettled();
});

test('a failed start returns an error, and the session gets the status ERROR', async () => {
  chromium.setBehavior('fails');
  const mark = crypto.randomUUID();
  const { status, body, headers } = await create<ErrorBody>({ userMetadata: { mark } }).finally(() =>
    chromium.setBehavior('well'),
  );
  assert.equal(status, 500);
  assert.match(body.message, /did not start/);
  assert.equal(headers['x-should-retry'], 'false');
  const [row] = (await list(`q=${encodeURIComponent(`user_metadata['mark']:'${mark}'`)}`)).body;
  assert.equal(row?.status, 'ERROR');
  assert.equal(row.endReason, 'start_failed');
  assert.match(row.endedAt ?? '', TIME);
  await server.waitUntilSettled();
});

test('a browser that hangs while starting is killed, and the create returns 504', async () => {
  chromium.setBehavior('hangs');
  const { status, body } = await create<ErrorBody>().finally(() => chromium.setBehavior('well'));
  assert.equal(status, 504);
  assert.equal(body.code, 'browser_start_timeout');
  assert.match(body.message, /gave up after 11000 ms waiting for Chromium to be ready/);
  await server.waitUntilSettled();
});

test('a session of another application cannot be read or released, and is not listed', async () => {
  const made = await server.operate('tokens', 'create', '--json');
  const { token } = JSON.parse(made.stdout);
  const applicationResponse = await server.api<{ id: string }>('POST', '/v1/applications', {
    body: { name: 'Other' },
    key: token,
  });
  const keyResponse = await server.api<{ key: string }>(
    'POST',
    `/v1/applications/${applicationResponse.body.id}/agent-keys`,
    {
      body: { name: 'other' },
      key: token,
    },
  );
  const { key } = keyResponse.body;
  await withSession({}, async ({ id }) => {
    const readResponse = await server.api('GET', `${SESSIONS}/${id}`, { key });
    const unknownIdResponse = await server.api('GET', `${SESSIONS}/${UNKNOWN_ID}`, { key });
    assert.equal(readResponse.status, 404);
    assert.equal(readResponse.body.code, 'not_found');
    assert.equal(readResponse.body.message.replace(id, ''), unknownIdResponse.body.message.replace(UNKNOWN_ID, ''));
    const releaseResponse = await server.api('POST', `${SESSIONS}/${id}`, { body: { status: 'REQUEST_RELEASE' }, key });
    assert.equal(releaseResponse.status, 404);
    assert.deepEqual((await server.api<Session[]>('GET', SESSIONS, { key })).body, []);
    assert.equal((await server.read(id)).status, 'RUNNING');
  });
});

test('ended sessions leave no process, file or unfinished database row behind', () => server.waitUntilSettled());
