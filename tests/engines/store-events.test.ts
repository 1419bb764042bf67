// Session events on the embedded PostgreSQL: every change is recorded as an event, and readers miss no event.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import pg from 'pg';
import { socketLogin } from '../../server/engines/store/embedded/is-responding.ts';
import { findPostmaster } from '../../server/engines/store/embedded/postmaster.ts';
import { openStore } from '../../server/engines/store/open-store.ts';
import type { FinishedDownload } from '../../server/engines/store/rows/downloads.ts';
import type { SessionEventRow } from '../../server/engines/store/rows/events.ts';
import type { OutboxRow } from '../../server/engines/store/rows/outbox.ts';
import type { NewSession, SessionRow } from '../../server/engines/store/rows/sessions.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { addMs } from '../../server/kit/clock.ts';
import {
  type AccountId,
  type ApplicationId,
  type DownloadId,
  type HostId,
  type KeyId,
  newId,
  type SessionId,
} from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { pollUntil, withTimeout } from '../../server/kit/wait.ts';
import { eventually, WAIT_TIMEOUT_MS } from '../harness/until.ts';
import { clockAt, makeTemporaryFolder, STEP_TIMEOUT_MS } from './store-fixtures.ts';

const NOW = new Date('2026-11-20T10:00:00.123Z');
const DAY_MS = 24 * 60 * 60_000;
const SERVICE = { kind: 'service' } as const;
const RELEASE_END = { status: 'COMPLETED', reason: 'released' } as const;

describe('session events', () => {
  const scope = new Scope();
  let store: Store;
  let login: () => pg.ClientConfig;

  before(async () => {
    const dataDir = makeTemporaryFolder(scope, 'events');
    login = () => socketLogin(findPostmaster(dataDir) ?? assert.fail('PostgreSQL is not running'));
    store = scope.own(await openStore({ dataDir, log: silentLog, clock: clockAt(NOW) }));
  });
  after(() => scope.close());

  const anApplication = async (): Promise<{ applicationId: ApplicationId; keyId: KeyId }> => {
    const account = { id: newId<AccountId>(NOW), name: 'Ada', createdAt: NOW };
    await store.accounts.insert(account);
    const id = newId<ApplicationId>(NOW);
    const row = {
      id,
      name: 'Shop',
      slug: id,
      billingAccountId: account.id,
      revision: 1,
      createdAt: NOW,
      updatedAt: NOW,
    };
    await store.applications.insert(row, account.id, 50);
    const keyId = newId<KeyId>(NOW);
    const hash = Buffer.alloc(32);
    hash.write(keyId.replaceAll('-', ''), 'hex');
    const key = { name: 'k', prefix: 'bak_', hash, scopes: [], cidrAllow: [], grants: [], createdAt: NOW };
    await store.keys.insert({ ...key, id: keyId, applicationId: id, revision: 1 }, 200);
    return { applicationId: id, keyId };
  };
  const aHost = async (slots = 1000): Promise<HostId> => {
    const id = newId<HostId>(NOW);
    await store.hosts.announce({ id, region: 'local', slots, startedAt: NOW });
    return id;
  };
  const newSession = async (more: Partial<NewSession> = {}): Promise<NewSession> => ({
    id: newId<SessionId>(NOW),
    applicationId: more.applicationId ?? (await anApplication()).applicationId,
    hostId: more.hostId ?? (await aHost()),
    region: 'local',
    keepAlive: false,
    userMetadata: {},
    settings: {},
    createdAt: NOW,
    expiresAt: addMs(NOW, 60_000),
    ...more,
  });
  const aSession = async (more: Partial<NewSession> = {}): Promise<SessionRow> => {
    const result = await store.sessions.place(await newSession(more));
    assert.ok('placed' in result);
    return result.placed;
  };
  const readEvents = async ({ applicationId, id }: SessionRow): Promise<readonly SessionEventRow[]> =>
    (await store.events.read(applicationId, { after: 0, session: id, limit: 2000 })).events;
  const describeEvents = async (row: SessionRow): Promise<unknown[]> =>
    (await readEvents(row)).map(({ type, actor, detail, at }) => ({
      type,
      actor,
      detail,
      ms: at.getTime() - NOW.getTime(),
    }));

  const aDownload = ({ id: sessionId, applicationId, hostId }: SessionRow, size: number): FinishedDownload => ({
    ...{ id: newId<DownloadId>(NOW), applicationId, sessionId, hostId, guid: randomUUID(), state: 'complete' },
    ...{ filename: 'a.txt', mimeType: 'text/plain', size, checksum: 'a'.repeat(64) },
    ...{ createdAt: NOW, finishedAt: addMs(NOW, 70) },
  });
  const anOutboxRow = ({ id, applicationId, hostId }: FinishedDownload): OutboxRow => ({
    ...{ id, applicationId, hostId, key: `key of ${id}`, staged: id },
    ...{ attempts: 0, dueAt: NOW, createdAt: NOW },
  });

  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client(login());
    await client.connect();
    scope.defer(() => client.end());
    return client;
  };

  it('session events describe a whole session, each with its time, actor and detail', async () => {
    const { applicationId, keyId } = await anApplication();
    const row = await aSession({ applicationId, keyId });
    const { id } = row;
    const by = { kind: 'agentKey', id: keyId } as const;
    await store.sessions.setBox(id, { id: newId(NOW), pid: 7 }, addMs(NOW, 1));
    await store.sessions.markRunning(id, addMs(NOW, 12));
    await store.sessions.recordClientConnected(id, addMs(NOW, 20), 1);
    await store.sessions.recordClientConnected(id, addMs(NOW, 21), 2);
    await store.sessions.recordClientDisconnected(id, addMs(NOW, 22), 1);
    await store.sessions.change(applicationId, id, { userMetadata: { run: 'a' }, by }, addMs(NOW, 30));
    await store.sessions.recordLastClientDisconnected(id, addMs(NOW, 2040), addMs(NOW, 40));
    await store.sessions.decideEnd(id, { ...RELEASE_END, by }, addMs(NOW, 50));
    await store.sessions.finish(id, addMs(NOW, 1500), 77);
    const service = { kind: 'service' };
    const client = { kind: 'client' };
    assert.deepEqual(await describeEvents(row), [
      {
        type: 'session.created',
        actor: by,
        detail: { region: 'local', keepAlive: false, expiresAt: addMs(NOW, 60_000).toISOString() },
        ms: 0,
      },
      { type: 'session.claimed', actor: service, detail: {}, ms: 1 },
      { type: 'session.started', actor: service, detail: { tookMs: 12 }, ms: 12 },
      { type: 'client.connected', actor: client, detail: { clients: 1 }, ms: 20 },
      { type: 'client.connected', actor: client, detail: { clients: 2 }, ms: 21 },
      { type: 'client.disconnected', actor: client, detail: { clients: 1 }, ms: 22 },
      { type: 'session.updated', actor: by, detail: { userMetadata: { run: 'a' } }, ms: 30 },
      {
        type: 'client.disconnected',
        actor: client,
        detail: { clients: 0, releaseAt: addMs(NOW, 2040).toISOString() },
        ms: 40,
      },
      { type: 'session.release_requested', actor: by, detail: {}, ms: 50 },
      { type: 'session.end_decided', actor: by, detail: RELEASE_END, ms: 50 },
      { type: 'session.ended', actor: by, detail: { ...RELEASE_END, seconds: 1.5, proxyBytes: 77 }, ms: 1500 },
    ]);
  });

  it('session events include each download that ends after its session, exactly once', async () => {
    const row = await aSession();
    const [whole, partial] = [aDownload(row, 10), aDownload(row, 10)];
    await store.downloads.begin({ ...partial, state: 'running' });
    await store.sessions.decideEnd(row.id, RELEASE_END, addMs(NOW, 50));
    await store.sessions.finish(row.id, addMs(NOW, 60), 0);
    const completeDownload = () => store.downloads.complete(whole, anOutboxRow(whole), SERVICE, () => {});
    const failDownload = () => store.downloads.fail(row.id, partial.guid, 'it is partial', addMs(NOW, 80), SERVICE);
    assert.deepEqual(
      [await completeDownload(), await completeDownload(), await failDownload(), await failDownload()],
      [...[true, false], ...[true, false]],
    );
    const { id: downloadId, filename, mimeType, size } = whole;
    assert.deepEqual((await describeEvents(row)).slice(-2), [
      { type: 'download.completed', actor: SERVICE, detail: { downloadId, filename, mimeType, size }, ms: 70 },
      { type: 'download.failed', actor: SERVICE, detail: { filename, reason: 'it is partial' }, ms: 80 },
    ]);
  });

  it('session events include only one of two concurrent downloads if the size limit allows only one', async () => {
    const row = await aSession();
    const complete = (download: FinishedDownload) =>
      store.downloads.complete(download, anOutboxRow(download), SERVICE, ({ session, application }) => {
        if (Math.max(session, application) + download.size > 15) throw new Error('no room');
      });
    const outcomes = await Promise.allSettled([aDownload(row, 10), aDownload(row, 10)].map(complete));
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
    assert.deepEqual(await store.downloads.usedBytes(row.applicationId, row.id), { session: 10, application: 10 });
    assert.equal((await readEvents(row)).filter(({ type }) => type === 'download.completed').length, 1);
    assert.equal((await store.downloads.ofSession(row.id)).length, 1);
  });

  it('session events include session.launched once the box of the session is recorded', async () => {
    const row = await aSession();
    await store.sessions.setBox(row.id, { id: row.id }, NOW);
    assert.equal((await readEvents(row)).at(-1)?.type, 'session.launched');
  });

  it('session events are not written for changes that have no effect', async () => {
    const hostId = await aHost(1);
    const { applicationId } = await anApplication();
    const row = await aSession({ hostId, applicationId });
    const refusedSession = await newSession({ hostId, applicationId });
    assert.ok('full' in (await store.sessions.place(refusedSession)));
    assert.equal(await store.sessions.finish(row.id, NOW, 0), undefined, 'no end is decided');
    await store.sessions.markRunning(row.id, NOW);
    assert.equal(await store.sessions.markRunning(row.id, NOW), undefined, 'the session is already running');
    await store.sessions.decideEnd(row.id, { status: 'ERROR', reason: 'crashed', by: { kind: 'browser' } }, NOW);
    assert.equal((await store.sessions.decideEnd(row.id, RELEASE_END, NOW))?.end?.reason, 'crashed');
    assert.equal(await store.sessions.change(applicationId, row.id, { userMetadata: {} }, NOW), undefined);
    await store.sessions.finish(row.id, NOW, 0);
    await store.sessions.finish(row.id, NOW, 0);
    await store.sessions.recordClientConnected(row.id, NOW);
    await store.sessions.recordLastClientDisconnected(row.id, undefined, NOW);
    await store.sessions.setBox(row.id, {}, NOW);
    await store.events.append(row.id, { type: 'client.refused', at: NOW, actor: { kind: 'client' }, detail: {} });
    assert.deepEqual(
      (await store.events.read(applicationId, { after: 0, limit: 100 })).events.map(({ type }) => type),
      ['session.created', 'session.started', 'session.end_decided', 'session.ended'],
    );
    assert.deepEqual((await readEvents(row)).at(-1)?.actor, { kind: 'browser' }, 'the actor is that of the decision');
  });

  it('session events contain only one decision when several calls end a session concurrently', async () => {
    const row = await aSession();
    const ends = Array.from({ length: 8 }, (_, index) => ({ ...RELEASE_END, reason: `reason ${index}` }));
    await Promise.all(ends.map(end => store.sessions.decideEnd(row.id, end, NOW)));
    const decisions = (await readEvents(row)).filter(({ type }) => type === 'session.end_decided');
    assert.equal(decisions.length, 1);
    assert.equal(decisions[0]?.detail.reason, (await store.sessions.byId(row.id))?.end?.reason);
  });

  it('session events are written for every session that a restarted server adopts', async () => {
    const hostId = await aHost();
    const rows = [await aSession({ hostId }), await aSession({ hostId })];
    await store.sessions.resumeTimers(hostId, NOW);
    for (const row of rows) assert.equal((await readEvents(row)).at(-1)?.type, 'session.adopted');
  });

  it('session events are hidden from other applications', async () => {
    const row = await aSession();
    const otherSession = await aSession();
    const { events } = await store.events.read(otherSession.applicationId, { after: 0, session: row.id, limit: 10 });
    assert.deepEqual(events, []);
  });

  it('session events can be read page by page and filtered by type', async () => {
    const { applicationId } = await anApplication();
    const rows = [await aSession({ applicationId }), await aSession({ applicationId })];
    for (const row of rows) await store.sessions.markRunning(row.id, NOW);
    const seenTypes: string[] = [];
    for (let after = 0, isFull = true; isFull; ) {
      const page = await store.events.read(applicationId, { after, limit: 1 });
      seenTypes.push(...page.events.map(({ type }) => type));
      ({ through: after, isFull } = page);
    }
    assert.deepEqual(seenTypes, ['session.created', 'session.created', 'session.started', 'session.started']);
    const startedList = await store.events.read(applicationId, { after: 0, types: ['session.started'], limit: 10 });
    assert.deepEqual(
      startedList.events.map(event => event.sessionId),
      rows.map(({ id }) => id),
    );
    assert.equal(startedList.isFull, false);
    assert.ok(startedList.through >= (startedList.events.at(-1)?.id ?? Number.POSITIVE_INFINITY));
    const untypedList = await store.events.read(applicationId, { after: 0, types: [], limit: 10 });
    assert.deepEqual(untypedList.events, []);
    assert.ok(untypedList.through >= startedList.through);
  });

  it('a read of session events waits for an open transaction and then includes its events', async () => {
    const earlySession = await aSession();
    const { applicationId } = earlySession;
    const lateClient = await connect();
    await lateClient.query('begin');
    const eventResult = await lateClient.query(
      `select record_session_event(id, application_id, now(), 'client.refused', 'client', null, '{}', 1000, 2048, 1655271028)
        as id from sessions where id = $1`,
      [earlySession.id],
    );
    const secondSession = await aSession({ applicationId });
    const pendingRead = store.events.read(applicationId, { after: 0, limit: 100 });
    const isReaderWaiting = async () => {
      const { rows } = await lateClient.query(`select 1 from pg_locks where locktype = 'advisory' and not granted`);
      return rows.length > 0 || undefined;
    };
    await pollUntil(STEP_TIMEOUT_MS, 'the reader to wait for the writer', isReaderWaiting);
    await lateClient.query('commit');
    const { events, through } = await withTimeout(STEP_TIMEOUT_MS, 'the reader', () => pendingRead);
    assert.deepEqual(
      events.map(({ type, sessionId }) => [type, sessionId]),
      [
        ['session.created', earlySession.id],
        ['client.refused', earlySession.id],
        ['session.created', secondSession.id],
      ],
    );
    assert.equal(events[1]?.id, eventResult.rows[0]?.id === undefined ? undefined : Number(eventResult.rows[0].id));
    assert.deepEqual(await store.events.read(applicationId, { after: through, limit: 10 }), {
      events: [],
      through,
      isFull: false,
    });
  });

  it('session events are read once and in order while many events are written', async () => {
    const { applicationId } = await anApplication();
    const hostId = await aHost();
    const writers = Array.from({ length: 6 }, async () => {
      for (let round = 0; round < 15; round++) {
        const row = await aSession({ applicationId, hostId });
        await store.sessions.markRunning(row.id, NOW);
        await store.sessions.decideEnd(row.id, RELEASE_END, NOW);
        await store.sessions.finish(row.id, NOW, 0);
      }
    });
    const pendingWrites = Promise.all(writers);
    const seenEvents: SessionEventRow[] = [];
    let after = 0;
    // A transaction in any database of the same PostgreSQL, for example one opened by another test, delays the events
    // of transactions that began after it.
    await eventually(
      'all events to be read',
      async () => {
        const page = await store.events.read(applicationId, { after, limit: 50 });
        seenEvents.push(...page.events);
        after = page.through;
        return seenEvents.length;
      },
      count => count >= 6 * 15 * 5,
      WAIT_TIMEOUT_MS,
      1,
    );
    await pendingWrites;
    assert.deepEqual(
      seenEvents.map(({ id }) => id),
      seenEvents.map(({ id }) => id).sort((one, other) => one - other),
    );
    assert.equal(seenEvents.length, 6 * 15 * 5);
    for (const events of Map.groupBy(seenEvents, ({ sessionId }) => sessionId).values())
      assert.deepEqual(
        events.map(({ type }) => type),
        ['session.created', 'session.started', 'session.release_requested', 'session.end_decided', 'session.ended'],
      );
  });

  it('when a session reaches its event limit, one event reports this, and only the events of its end are recorded after that', async () => {
    const row = await aSession();
    const client = await connect();
    await client.query(
      `select record_session_event($1, $2, now(), 'client.connected', 'client', null, '{}', 1000, 2048, 1)
        from generate_series(1, 998)`,
      [row.id, row.applicationId],
    );
    for (let round = 0; round < 3; round++) await store.sessions.recordClientConnected(row.id, NOW);
    await store.sessions.decideEnd(row.id, RELEASE_END, NOW);
    await store.sessions.finish(row.id, NOW, 0);
    const types = (await readEvents(row)).map(({ type }) => type);
    assert.equal(types.length, 1004);
    assert.deepEqual(types.slice(-5), [
      'client.connected',
      'session.events_limited',
      'session.release_requested',
      'session.end_decided',
      'session.ended',
    ]);
  });

  it('the detail of a session event is truncated or replaced if it is too large, and the change still takes effect', async () => {
    const row = await aSession();
    await store.sessions.markRunning(row.id, NOW);
    const userMetadata = { text: 'x'.repeat(3000) };
    assert.ok(await store.sessions.change(row.applicationId, row.id, { userMetadata }, NOW));
    assert.deepEqual((await readEvents(row)).at(-1)?.detail, { cut: true });
    await store.sessions.decideEnd(row.id, { status: 'ERROR', reason: 'crashed', detail: 'y'.repeat(5000) }, NOW);
    await store.sessions.finish(row.id, NOW, 0);
    assert.equal((await readEvents(row)).at(-1)?.detail.detail, 'y'.repeat(500));
  });

  it('session events are announced only when they can be read', async () => {
    const payloads: string[] = [];
    const listener = await store.listen(
      'session_event',
      payload => void payloads.push(payload),
      () => {},
    );
    const row = await aSession();
    const payload = `${row.applicationId} ${row.id}`;
    await pollUntil(STEP_TIMEOUT_MS, 'the notice', () => payloads.includes(payload) || undefined);
    payloads.length = 0;
    await store.events.append(row.id, { type: 'client.refused', at: NOW, actor: { kind: 'client' }, detail: { n: 1 } });
    await pollUntil(STEP_TIMEOUT_MS, 'the second notice', () => payloads.includes(payload) || undefined);
    assert.deepEqual((await readEvents(row)).at(-1)?.detail, { n: 1 });
    await listener.close();
  });

  it('session events are deleted only if their session ended before the cutoff, and the session itself is kept', async () => {
    const [old, young, living] = [await aSession(), await aSession(), await aSession()];
    for (const [row, endedAt] of [
      [old, addMs(NOW, -40 * DAY_MS)],
      [young, NOW],
    ] as const) {
      await store.sessions.decideEnd(row.id, RELEASE_END, endedAt);
      await store.sessions.finish(row.id, endedAt, 0);
    }
    const cutoff = addMs(NOW, -31 * DAY_MS);
    assert.equal(await store.events.forget(cutoff, 10), 1);
    assert.equal(await store.events.forget(cutoff, 10), 0);
    assert.deepEqual(await readEvents(old), []);
    assert.equal((await readEvents(young)).length, 4);
    assert.equal((await readEvents(living)).length, 1);
    assert.ok(await store.sessions.byId(old.id), 'the session itself stays');
  });
});
