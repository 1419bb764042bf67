// Events of sessions: as a list and as a stream, for every end reason.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { SessionEvent, SessionEventPage } from '../../contract/events.ts';
import { CdpClient, expectUpgradeRefusal } from '../harness/cdp.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { EventStream } from '../harness/event-stream.ts';
import { killBox } from '../harness/kill-box.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const server = await startServer({
  clock: 'test',
  env: { BERTH_ENGINE: LIGHT_ENGINE, BERTH_SLOTS: '6', BERTH_DISCONNECT_GRACE: '1' },
});

const EVENTS = '/v1/browsers/events';
const UNKNOWN_ID = '01a1fa50-5319-7450-a6b3-c787ada50631';
/** Settings that no warm browser has. The session therefore gets a new box, which has the id of the session. */
const COLD = { browserSettings: { locale: 'de-DE' } };
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const requestEvents = (id: string, query = '') =>
  server.api<SessionEventPage>('GET', `/v1/browsers/sessions/${id}/events${query}`);
const listEvents = async (id: string): Promise<SessionEvent[]> => (await requestEvents(id)).body.data;
const openStream = (path: string, headers: Record<string, string> = {}): Promise<EventStream> =>
  EventStream.open(server.url + path, { authorization: `Bearer ${server.key}`, ...headers });
const openSessionStream = (id: string, headers: Record<string, string> = {}): Promise<EventStream> =>
  openStream(`/v1/browsers/sessions/${id}/events`, headers);
const typesOf = (events: readonly SessionEvent[]): string[] => events.map(({ type }) => type);
const rest = ({ type, actor, detail }: SessionEvent) => ({ type, actor, detail });

/**
 * Checks the last two events about the session itself, `session.end_decided` and `session.ended`, and returns the first
 * of them. Ignores events about clients.
 */
async function waitForEnd(id: string): Promise<SessionEvent> {
  await server.waitUntilEnded(id);
  const [decided, ended] = (await listEvents(id)).filter(({ type }) => type.startsWith('session.')).slice(-2);
  assert.ok(decided && ended);
  assert.equal(decided.type, 'session.end_decided');
  assert.equal(ended.type, 'session.ended');
  assert.deepEqual(ended.actor, decided.actor);
  assert.equal(ended.detail.reason, decided.detail.reason);
  assert.equal(ended.detail.status, decided.detail.status);
  assert.equal((await server.read(id)).endDetail, decided.detail.detail);
  return decided;
}

test('a session has events from its creation to its release, with times, actors and details', async () => {
  const session = await server.createSession({ userMetadata: { run: 'life' } });
  const client = await CdpClient.connect(session.connectUrl);
  const secondClient = await CdpClient.connect(session.connectUrl);
  await secondClient.close();
  await eventually(
    'the second client to be gone',
    () => listEvents(session.id),
    events => typesOf(events).includes('client.disconnected'),
  );
  await server.api('POST', `/v1/browsers/sessions/${session.id}`, { body: { userMetadata: { run: 'other' } } });
  await server.release(session.id);
  const { code, reason } = await client.waitForClose();
  assert.deepEqual([code, reason], [1000, 'session ended: released']);

  const events = await listEvents(session.id);
  const [created, got] = events;
  assert.ok(created && got);
  const key = created.actor;
  assert.equal(key.kind, 'agentKey');
  assert.match(key.id ?? '', /^[0-9a-f-]{36}$/);
  assert.ok(got.type === 'session.claimed' || got.type === 'session.launched', got.type);
  assert.deepEqual(events.filter(event => event !== got).map(rest), [
    {
      type: 'session.created',
      actor: key,
      detail: { keepAlive: false, region: 'local', expiresAt: session.expiresAt },
    },
    { type: 'session.started', actor: { kind: 'service' }, detail: { tookMs: events[2]?.detail.tookMs } },
    { type: 'client.connected', actor: { kind: 'client' }, detail: { clients: 1 } },
    { type: 'client.connected', actor: { kind: 'client' }, detail: { clients: 2 } },
    { type: 'client.disconnected', actor: { kind: 'client' }, detail: { clients: 1 } },
    { type: 'session.updated', actor: key, detail: { userMetadata: { run: 'other' } } },
    { type: 'session.release_requested', actor: key, detail: {} },
    {
      type: 'session.end_decided',
      actor: key,
      detail: { status: 'COMPLETED', reason: 'released', detail: 'a caller released it' },
    },
    {
      type: 'session.ended',
      actor: key,
      detail: {
        ...{ status: 'COMPLETED', reason: 'released', detail: 'a caller released it' },
        ...{ proxyBytes: 0, seconds: events.at(-1)?.detail.seconds },
      },
    },
  ]);
  assert.ok(Number(events[2]?.detail.tookMs) > 0);
  for (const event of events) {
    assert.match(event.time, TIME);
    assert.match(event.id, /^\d{16}$/);
    assert.equal(event.sessionId, session.id);
    assert.doesNotMatch(JSON.stringify(event), new RegExp(session.signingKey));
  }
  const ids = events.map(({ id }) => id);
  assert.deepEqual(ids, [...ids].sort());
});

test('events can be listed in pages and filtered by type', async () => {
  const { id } = await server.createSession();
  await server.release(id);
  const all = await listEvents(id);
  const seen: SessionEvent[] = [];
  for (let cursor: string | undefined = '0'; cursor !== undefined; ) {
    const { body } = await requestEvents(id, `?limit=2&after=${cursor}`);
    assert.ok(body.data.length <= 2);
    seen.push(...body.data);
    cursor = body.nextCursor;
  }
  assert.deepEqual(seen, all);
  const filteredResponse = await requestEvents(id, '?type=session.created,session.ended');
  assert.deepEqual(typesOf(filteredResponse.body.data), ['session.created', 'session.ended']);
  const sessionEvents = await server.api<SessionEventPage>('GET', `${EVENTS}?sessionId=${id}`);
  assert.deepEqual(sessionEvents.body.data, all);
  const applicationEvents = await server.api<SessionEventPage>('GET', `${EVENTS}?limit=1000`);
  assert.deepEqual(
    applicationEvents.body.data.filter(event => event.sessionId === id),
    all,
  );
});

test('the events of a period can be listed and streamed', async () => {
  const { id } = await server.createSession();
  await server.release(id);
  const all = await listEvents(id);
  const from = all.find(({ type }) => type === 'session.release_requested')?.time ?? '';
  const laterEvents = all.filter(({ time }) => time >= from);
  const earlierEvents = all.filter(({ time }) => time < from);
  assert.ok(earlierEvents.length > 0 && laterEvents.length > 0);
  assert.deepEqual((await requestEvents(id, `?from=${from}`)).body.data, laterEvents);
  assert.deepEqual((await requestEvents(id, `?to=${from}`)).body.data, earlierEvents);
  const applicationEvents = await server.api<SessionEventPage>('GET', `${EVENTS}?from=${from}&sessionId=${id}`);
  assert.deepEqual(applicationEvents.body.data, laterEvents);
  const streamPaths = [
    `/v1/browsers/sessions/${id}/events?from=${from}`,
    `/v1/browsers/sessions/${id}/events?to=${from}`,
  ];
  for (const [index, path] of streamPaths.entries()) {
    const stream = await openStream(path);
    assert.equal(await stream.waitForEnd(), 'ended');
    assert.deepEqual(
      stream.events.map(({ data }) => data),
      index === 0 ? laterEvents : earlierEvents,
    );
  }
  const streamFromPast = await openStream(`${EVENTS}?from=${from}`);
  await streamFromPast.waitForEvent('session.ended', ({ data }) => data.sessionId === id);
  streamFromPast.cut();
});

test('a request for events with an invalid query is refused', async () => {
  const { id } = await server.createSession();
  const refusals = [
    [`/v1/browsers/sessions/${UNKNOWN_ID}/events`, {}, 404, 'not_found'],
    [`/v1/browsers/sessions/${id}/events?type=session.exploded`, {}, 400, 'invalid_request'],
    [`/v1/browsers/sessions/${id}/events?after=abc`, {}, 400, 'invalid_request'],
    [`/v1/browsers/sessions/${id}/events?limit=0`, {}, 400, 'invalid_request'],
    [`/v1/browsers/sessions/${id}/events?from=yesterday`, {}, 400, 'invalid_request'],
    [`${EVENTS}?from=2026-11-26T00:00:00.000Z&to=2026-11-25T00:00:00.000Z`, {}, 400, 'invalid_request'],
    [`${EVENTS}?sessionId=${UNKNOWN_ID}`, {}, 404, 'not_found'],
    [EVENTS, { accept: 'text/event-stream', 'last-event-id': 'abc' }, 400, 'invalid_request'],
    [`/v1/browsers/sessions/${UNKNOWN_ID}/events`, { accept: 'text/event-stream' }, 404, 'not_found'],
  ] as const;
  for (const [path, headers, status, code] of refusals) {
    const { status: got, body } = await server.api<ErrorBody>('GET', path, { headers });
    assert.deepEqual([got, body.code], [status, code], path);
  }
  assert.equal((await server.api('GET', EVENTS, { key: null })).status, 401);
  assert.equal((await server.api('GET', `/v1/sessions/${id}/events`)).body.code, 'route_not_found');
  await server.release(id);
});

test('a request for the events of a session with a key of another application returns 404', async () => {
  const { id } = await server.createSession();
  const createResult = await server.operate('tokens', 'create', '--name', 'events', '--json');
  const token: string = JSON.parse(createResult.stdout).token;
  const application = await server.api<{ id: string }>('POST', '/v1/applications', {
    key: token,
    body: { name: 'Other' },
  });
  const keyResponse = await server.api<{ key: string }>('POST', `/v1/applications/${application.body.id}/agent-keys`, {
    key: token,
    body: { name: 'other' },
  });
  const foreignOptions = { key: keyResponse.body.key };
  assert.equal((await server.api('GET', `/v1/browsers/sessions/${id}/events`, foreignOptions)).status, 404);
  assert.deepEqual((await server.api<SessionEventPage>('GET', EVENTS, foreignOptions)).body.data, []);
  await server.release(id);
});

test('the stream of a session sends past events and then new events, and closes after the end of the session', async () => {
  const session = await server.createSession({ keepAlive: true });
  const stream = await openSessionStream(session.id);
  assert.equal(stream.headers['cache-control'], 'no-store');
  await stream.waitForEvent('session.started');
  const client = await CdpClient.connect(session.connectUrl);
  await stream.waitForEvent('client.connected');
  await client.close();
  await stream.waitForEvent('client.disconnected');
  await server.release(session.id);
  assert.equal(await stream.waitForEnd(), 'ended');
  assert.deepEqual(
    stream.events.map(({ data }) => data),
    await listEvents(session.id),
  );
  for (const { id, event, data } of stream.events) assert.deepEqual([id, event], [data.id, data.type]);
});

test('a reader that reconnects gets the events after the Last-Event-ID, and gets 204 if the session has no more events', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const firstStream = await openSessionStream(id);
  const { id: last } = await firstStream.waitForEvent('session.started');
  firstStream.cut();
  await server.release(id);
  const secondStream = await openStream(`/v1/browsers/sessions/${id}/events?after=0`, { 'last-event-id': last });
  assert.equal(await secondStream.waitForEnd(), 'ended');
  assert.deepEqual(secondStream.types, ['session.release_requested', 'session.end_decided', 'session.ended']);
  const reconnectResponse = await server.api('GET', `/v1/browsers/sessions/${id}/events`, {
    headers: { accept: 'text/event-stream', 'last-event-id': secondStream.events.at(-1)?.id ?? '' },
  });
  assert.deepEqual([reconnectResponse.status, reconnectResponse.text], [204, '']);
});

test('a stream filtered by type closes when the session ends', async () => {
  const { id } = await server.createSession();
  const stream = await openStream(`/v1/browsers/sessions/${id}/events?type=session.started`);
  await server.release(id);
  assert.equal(await stream.waitForEnd(), 'ended');
  assert.deepEqual(stream.types, ['session.started']);
});

test('the stream of an application starts with new events or after a given event, and includes all sessions', async () => {
  const earlierSession = await server.createSession();
  const stream = await openStream(EVENTS);
  const ends = await openStream(`${EVENTS}?type=session.ended`);
  const [one, other] = await Promise.all([server.createSession(), server.createSession()]);
  for (const { id } of [earlierSession, one, other]) await server.release(id);
  for (const { id } of [earlierSession, one, other]) {
    await stream.waitForEvent('session.ended', ({ data }) => data.sessionId === id);
    await ends.waitForEvent('session.ended', ({ data }) => data.sessionId === id);
  }
  const told = (id: string) => stream.events.filter(({ data }) => data.sessionId === id).map(({ data }) => data);
  assert.deepEqual(told(one.id), await listEvents(one.id));
  assert.deepEqual(told(other.id), await listEvents(other.id));
  assert.ok(!told(earlierSession.id).some(({ type }) => type === 'session.created'), 'created earlier');
  assert.deepEqual(new Set(ends.types), new Set(['session.ended']));
  const all = await openStream(`${EVENTS}?after=0`);
  await all.waitForEvent('session.created', ({ data }) => data.sessionId === earlierSession.id);
  for (const one of [stream, ends, all]) one.cut();
});

test('a stream without events sends heartbeats', async () => {
  const stream = await openStream(EVENTS);
  for (let round = 0; round < 10; round++) await server.advance(2_000);
  assert.equal(await stream.waitForComment(), ': still here');
  assert.deepEqual(stream.events, []);
  stream.cut();
});

test('an application can have at most twenty streams at the same time', async () => {
  const tryOpen = () => openStream(EVENTS).catch(() => undefined);
  // The server may not have closed the earlier streams yet.
  const open = () => eventually('a stream to be accepted', tryOpen, stream => stream !== undefined);
  const streams = await Promise.all(Array.from({ length: 20 }, open));
  const refusal = await server.api('GET', EVENTS, { headers: { accept: 'text/event-stream' } });
  assert.deepEqual([refusal.status, refusal.body.code], [429, 'stream_limit']);
  assert.deepEqual(refusal.body.details, { limit: 20, used: 20 });
  streams.pop()?.cut();
  const last = await open();
  for (const stream of [...streams, last]) stream?.cut();
});

test('a stream ends when its key is revoked', async () => {
  const createResult = await server.operate(
    'keys',
    'create',
    '--application',
    server.applicationId,
    '--name',
    'short',
    '--json',
  );
  assert.equal(createResult.code, 0, createResult.stderr);
  const { key, id }: { key: string; id: string } = JSON.parse(createResult.stdout);
  const stream = await openStream(EVENTS, { authorization: `Bearer ${key}` });
  const revokeResult = await server.operate('keys', 'revoke', '--application', server.applicationId, id);
  assert.equal(revokeResult.code, 0, revokeResult.stderr);
  for (let round = 0; round < 10; round++) await server.advance(2_000);
  assert.equal(await stream.waitForEnd(), 'cut');
});

test('a HEAD request for a stream returns immediately', async () => {
  const { status, text } = await server.api('HEAD', EVENTS, { headers: { accept: 'text/event-stream' } });
  assert.deepEqual([status, text], [200, '']);
});

test('an event records a client that is refused by the client limit, but not a client with an invalid credential', async () => {
  const session = await server.createSession({ keepAlive: true });
  const clients = await Promise.all(Array.from({ length: 20 }, () => CdpClient.connect(session.connectUrl)));
  assert.equal((await expectUpgradeRefusal(session.connectUrl)).status, 429);
  assert.equal((await expectUpgradeRefusal(`${session.connectUrl}x`)).status, 401);
  const refusals = await eventually(
    'the refusal to be recorded',
    async () => (await listEvents(session.id)).filter(({ type }) => type === 'client.refused'),
    events => events.length > 0,
  );
  assert.deepEqual(refusals.map(rest), [
    { type: 'client.refused', actor: { kind: 'client' }, detail: { code: 'client_limit', clients: 20 } },
  ]);
  for (const client of clients) client.cut();
  await server.release(session.id);
});

test('each end reason is recorded with its actor', async t => {
  await t.test('the actor is the client when the last client disconnects', async () => {
    const session = await server.createSession();
    const client = await CdpClient.connect(session.connectUrl);
    await client.close();
    const left = await eventually(
      'the client to be gone',
      async () => (await listEvents(session.id)).find(({ type }) => type === 'client.disconnected'),
      event => event !== undefined,
    );
    assert.match(String(left?.detail.releaseAt), TIME);
    const { actor, detail } = await waitForEnd(session.id);
    assert.deepEqual(
      [actor, detail],
      [
        { kind: 'client' },
        {
          status: 'COMPLETED',
          reason: 'client_disconnected',
          detail: 'the last client disconnected, and none returned in time',
        },
      ],
    );
  });

  await t.test('the actor is the client when a client closes the browser', async () => {
    const session = await server.createSession();
    const client = await CdpClient.connect(session.connectUrl);
    await client.send('Browser.close');
    const { reason } = await client.waitForClose();
    assert.equal(reason, 'session ended: browser_closed');
    const { actor, detail } = await waitForEnd(session.id);
    assert.deepEqual(
      [actor, detail],
      [{ kind: 'client' }, { status: 'COMPLETED', reason: 'browser_closed', detail: 'a client closed the browser' }],
    );
  });

  await t.test('the actor is the clock when the time limit is reached', async () => {
    const session = await server.createSession({ timeout: 60 });
    const client = await CdpClient.connect(session.connectUrl);
    await eventually(
      'the event that the client has connected',
      async () => typesOf(await listEvents(session.id)),
      types => types.includes('client.connected'),
    );
    await server.advance(31_000);
    await client.send('Browser.getVersion'); // otherwise the client would be disconnected after 55 seconds
    await server.advance(30_000);
    const { code, reason } = await client.waitForClose();
    assert.deepEqual([code, reason], [4001, 'session ended: timed_out']);
    const { actor, detail } = await waitForEnd(session.id);
    assert.deepEqual(
      [actor, detail],
      [{ kind: 'clock' }, { status: 'TIMED_OUT', reason: 'timed_out', detail: 'its time limit was reached' }],
    );
  });

  await t.test('the actor is the clock when no client connects in time', async () => {
    const session = await server.createSession();
    await server.advance(301_000);
    const { actor, detail } = await waitForEnd(session.id);
    assert.deepEqual(
      [actor, detail],
      [{ kind: 'clock' }, { status: 'TIMED_OUT', reason: 'connect_timeout', detail: 'no client connected in time' }],
    );
  });

  await t.test('the actor is the browser when the browser crashes', async () => {
    const session = await server.createSession(COLD);
    const client = await CdpClient.connect(session.connectUrl);
    killBox(server.dataDir, session.id);
    const { code, reason } = await client.waitForClose();
    assert.deepEqual([code, reason], [4002, 'session ended: crashed']);
    const { actor, detail } = await waitForEnd(session.id);
    assert.deepEqual([actor.kind, detail.status, detail.reason], ['browser', 'ERROR', 'crashed']);
    assert.equal(typeof detail.detail, 'string');
  });
});

test('events are deleted 31 days after the session ended, but the session is kept', async () => {
  const { id } = await server.createSession();
  await server.release(id);
  await server.advance(30 * 24 * 3_600_000);
  assert.ok((await listEvents(id)).length > 0);
  await server.advance(2 * 24 * 3_600_000);
  await server.eventuallyHourly(
    'the events to be deleted',
    () => listEvents(id),
    events => events.length === 0,
  );
  assert.equal((await server.read(id)).endReason, 'released');
  const streamResponse = await server.api('GET', `/v1/browsers/sessions/${id}/events`, {
    headers: { accept: 'text/event-stream' },
  });
  assert.equal(streamResponse.status, 204);
});
