// Contexts over the API: stored data, concurrent saves, exclusive use, versions, and deletion.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Browserbase from '@browserbasehq/sdk';
import type { Context, StorageState } from '../../contract/contexts.ts';
import {
  createContext,
  listContextEvents,
  listVersions,
  persistentBody,
  readContext,
  waitForContextEvent,
  waitForVersion,
} from '../harness/contexts.ts';
import {
  allMarks,
  findMarks,
  LOGIN_PAGES,
  leaveMarks,
  marksWithoutWorker,
  runOnPage,
  sitesOf,
} from '../harness/logged-in.ts';
import { createOtherApplicationKey } from '../harness/other-application.ts';
import { openPages } from '../harness/pages.ts';
import { openChosenStore } from '../harness/s3.ts';
import { startServer } from '../harness/server.ts';

const CONTEXTS = '/v1/browsers/contexts';
const UNKNOWN_ID = '0192f7c2-6a64-7a0e-9a53-0f1c3a2f7d10';

const pages = await openPages(LOGIN_PAGES);
const store = await openChosenStore();
// More slots than are used at the same time, because boxes of ended sessions are removed with a delay.
const server = await startServer({ pages, env: { BERTH_SLOTS: '12', ...store?.env } });
const { secure, plain } = sitesOf(pages);

/** Runs a session that stores the mark on both sites and ends when its client disconnects. Returns the session's id. */
async function leave(id: string, mark: string): Promise<string> {
  const session = await server.createSession(persistentBody(id));
  await runOnPage(session.connectUrl, async page => {
    await leaveMarks(page, secure, mark);
    await leaveMarks(page, plain, mark);
  });
  assert.equal((await server.waitUntilEnded(session.id)).status, 'COMPLETED');
  return session.id;
}

async function assertMarks(id: string, mark: string): Promise<void> {
  const session = await server.createSession({ contextId: id, keepAlive: true });
  await runOnPage(session.connectUrl, async page => {
    assert.deepEqual(await findMarks(page, secure), allMarks(mark));
    assert.deepEqual(await findMarks(page, plain), marksWithoutWorker(mark));
  });
  await server.release(session.id);
}

test('a session restores all kinds of storage that the previous session saved', async () => {
  const { id, version } = await createContext(server);
  assert.equal(version, 0);
  const firstSessionId = await leave(id, 'one');
  const session = await server.createSession(persistentBody(id));
  assert.equal(session.contextId, id, 'the create waited for the save');
  await runOnPage(session.connectUrl, async page => {
    assert.deepEqual(await findMarks(page, secure), allMarks('one'));
    assert.deepEqual(await findMarks(page, plain), marksWithoutWorker('one'));
    await leaveMarks(page, secure, 'two');
    await leaveMarks(page, plain, 'two');
  });
  await waitForVersion(server, id, 2);
  await assertMarks(id, 'two');
  const context = await readContext(server, id);
  assert.equal(context.version, 2, 'the last session has saved nothing');
  assert.equal(context.lastSessionId, session.id);
  assert.ok(context.sizeBytes > 10_000);
  await waitForContextEvent(server, session.id, 'context.saved');
  const told = (await listContextEvents(server, session.id)).map(({ type, detail }) => [type, detail.version]);
  assert.deepEqual(told, [
    ['context.restored', 1],
    ['context.saved', 2],
  ]);
  assert.deepEqual(
    (await listContextEvents(server, firstSessionId)).map(({ type }) => type),
    ['context.saved'],
  );
});

test('a session without `persist` does not save its context', async () => {
  const { id } = await createContext(server);
  const session = await server.createSession({ browserSettings: { context: { id } } });
  await runOnPage(session.connectUrl, page => leaveMarks(page, plain, 'gone'));
  await server.waitUntilEnded(session.id);
  assert.equal((await readContext(server, id)).version, 0);
  assert.deepEqual(await listContextEvents(server, session.id), []);
});

test('a release request returns before the context is saved', async () => {
  const { id } = await createContext(server);
  const session = await server.createSession({ keepAlive: true, ...persistentBody(id) });
  await runOnPage(session.connectUrl, page => leaveMarks(page, plain, 'kept'));
  const releasedSession = await server.release(session.id);
  assert.equal(releasedSession.status, 'COMPLETED');
  const savedEvent = await waitForContextEvent(server, session.id, 'context.saved');
  assert.ok(savedEvent.time > (releasedSession.endedAt ?? ''), 'the context is saved after the end of the session');
});

test('if two concurrent sessions save a context, the last save becomes current, and the other session gets a context.overtaken event', async () => {
  const { id } = await createContext(server);
  const [a, b] = await Promise.all([
    server.createSession(persistentBody(id)),
    server.createSession(persistentBody(id)),
  ]);
  await runOnPage(a.connectUrl, page => leaveMarks(page, plain, 'a'));
  await waitForVersion(server, id, 1);
  await runOnPage(b.connectUrl, page => leaveMarks(page, plain, 'b'));
  await waitForVersion(server, id, 2);
  const versions = await listVersions(server, id);
  assert.deepEqual(
    versions.map(({ version, sessionId, current, source }) => ({ version, sessionId, current, source })),
    [
      { version: 2, sessionId: b.id, current: true, source: 'session' },
      { version: 1, sessionId: a.id, current: false, source: 'session' },
    ],
  );
  assert.ok(versions[1]?.expiresAt);
  const overtakenEvent = await waitForContextEvent(server, a.id, 'context.overtaken');
  assert.deepEqual(overtakenEvent.detail, { contextId: id, version: 1, by: b.id, byVersion: 2 });
  assert.equal((await waitForContextEvent(server, b.id, 'context.saved')).detail.overtook, 1);
});

test('only one session at a time can use a context exclusively, but other sessions can still save to the context', async () => {
  const { id } = await createContext(server);
  const exclusiveBody = { browserSettings: { context: { id, persist: true, exclusive: true } } };
  const exclusiveSession = await server.createSession({ keepAlive: true, ...exclusiveBody });
  const refusal = await server.api('POST', '/v1/browsers/sessions', { body: exclusiveBody });
  assert.equal(refusal.status, 409);
  assert.equal(refusal.body.code, 'context_in_use');
  assert.equal(refusal.body.details?.sessionId, exclusiveSession.id);
  assert.equal(refusal.headers['x-should-retry'], 'false');
  const otherSession = await server.createSession(persistentBody(id));
  await server.release(otherSession.id);
  await server.release(exclusiveSession.id);
  const next = await server.createSession(exclusiveBody);
  await server.release(next.id);
});

test('an earlier version of a context can be restored, and a fork is independent of the original', async () => {
  const { id } = await createContext(server);
  await leave(id, 'first');
  await waitForVersion(server, id, 1);
  await leave(id, 'second');
  await waitForVersion(server, id, 2);
  const restoreResponse = await server.api<Context>('POST', `${CONTEXTS}/${id}/restore`, { body: { version: 1 } });
  assert.equal(restoreResponse.status, 200, restoreResponse.text);
  assert.equal(restoreResponse.body.version, 3);
  await assertMarks(id, 'first');
  const forkResponse = await server.api<Context>('POST', `${CONTEXTS}/${id}/fork`, {
    body: { version: 2, name: 'Fork' },
  });
  assert.equal(forkResponse.status, 201, forkResponse.text);
  assert.equal(forkResponse.body.version, 1);
  await assertMarks(forkResponse.body.id, 'second');
  assert.equal((await server.api('DELETE', `${CONTEXTS}/${id}`)).status, 204);
  await assertMarks(forkResponse.body.id, 'second');
  assert.equal(
    (await server.api('POST', `${CONTEXTS}/${forkResponse.body.id}/restore`, { body: { version: 9 } })).status,
    404,
  );
});

test("a context can import and export Playwright's storage state", async () => {
  const { id } = await createContext(server);
  const host = new URL(plain).hostname;
  const cookie = { path: '/', httpOnly: false, secure: false, sameSite: 'Lax' } as const;
  const state: StorageState = {
    cookies: [
      { ...cookie, name: 'persistent', value: 'imported', domain: host, expires: Math.floor(Date.now() / 1000) + 3600 },
      { ...cookie, name: 'session', value: 'imported', domain: host, expires: -1 },
    ],
    origins: [
      {
        origin: plain,
        localStorage: [
          { name: 'mark', value: 'imported' },
          { name: '日本', value: 'ü🚢' },
        ],
      },
    ],
  };
  const importResponse = await server.api<Context>('POST', `${CONTEXTS}/${id}/storage-state`, { body: state });
  assert.equal(importResponse.status, 200, importResponse.text);
  const session = await server.createSession(persistentBody(id));
  await runOnPage(session.connectUrl, async page => {
    const foundMarks = await findMarks(page, plain);
    assert.equal(foundMarks.persistentCookie, 'imported');
    assert.equal(foundMarks.sessionCookie, 'imported');
    assert.equal(foundMarks.localStorage, 'imported');
    assert.equal(await page.evaluate('localStorage.getItem("日本")'), 'ü🚢');
    await page.evaluate('localStorage.setItem("more", "x".repeat(5000))');
  });
  await waitForVersion(server, id, 2);
  const exportResponse = await server.api<StorageState>('GET', `${CONTEXTS}/${id}/storage-state`);
  assert.equal(exportResponse.status, 200, exportResponse.text);
  const exportedCookies = exportResponse.body.cookies
    .map(({ name, value, expires }) => [name, value, expires > 0])
    .sort();
  assert.deepEqual(exportedCookies, [
    ['persistent', 'imported', true],
    ['session', 'imported', false],
  ]);
  const storedItems = exportResponse.body.origins.find(({ origin }) => origin === plain)?.localStorage;
  assert.deepEqual(
    new Map(storedItems?.map(({ name, value }) => [name, value])),
    new Map([
      ['mark', 'imported'],
      ['日本', 'ü🚢'],
      ['more', 'x'.repeat(5000)],
    ]),
  );
  const earlierStateResponse = await server.api<StorageState>('GET', `${CONTEXTS}/${id}/storage-state?version=1`);
  assert.deepEqual(
    earlierStateResponse.body.origins.flatMap(({ localStorage }) => localStorage.map(({ name }) => name)).sort(),
    ['mark', '日本'],
    'the version before the session',
  );
  const versionRefusal = await server.api('GET', `${CONTEXTS}/${id}/storage-state?version=3`);
  assert.deepEqual([versionRefusal.status, versionRefusal.body.code], [404, 'not_found']);
});

test('context names are unique regardless of case, and can be reused after the context is deleted', async () => {
  const context = await createContext(server, { name: '  Shop Login ' });
  assert.equal(context.name, 'Shop Login');
  const conflictResponse = await server.api('POST', CONTEXTS, { body: { name: 'shop login' } });
  assert.equal(conflictResponse.status, 409);
  assert.equal(conflictResponse.body.code, 'context_name_taken');
  assert.equal((await server.api('DELETE', `${CONTEXTS}/${context.id}`)).status, 204);
  const secondDeleteResponse = await server.api('DELETE', `${CONTEXTS}/${context.id}`);
  assert.equal(secondDeleteResponse.status, 404);
  const resentDeleteResponse = await server.api('DELETE', `${CONTEXTS}/${context.id}`, {
    headers: { 'x-stainless-retry-count': '1' },
  });
  assert.equal(resentDeleteResponse.status, 204);
  await createContext(server, { name: 'shop login' });
  for (const name of ['', '   ', 'x'.repeat(129), 'a\u0000b'])
    assert.equal((await server.api('POST', CONTEXTS, { body: { name } })).status, 400, JSON.stringify(name));
});

test('contexts are listed in pages', async () => {
  const createdContexts = [await createContext(server), await createContext(server)];
  const firstResponse = await server.api<Context[]>('GET', `${CONTEXTS}?limit=1`);
  assert.deepEqual(
    firstResponse.body.map(({ id }) => id),
    [createdContexts[1]?.id],
  );
  const secondResponse = await server.api<Context[]>(
    'GET',
    `${CONTEXTS}?limit=1&before=${firstResponse.headers['x-next-before']}`,
  );
  assert.equal(secondResponse.body[0]?.id, createdContexts[0]?.id);
});

test('the official client creates, reads and deletes contexts', async () => {
  const sdk = new Browserbase({ apiKey: server.key, baseURL: server.url });
  const createdContext = await sdk.contexts.create({});
  assert.equal(createdContext.cipherAlgorithm, 'AES-256-CBC');
  assert.equal(createdContext.initializationVectorSize, 16);
  assert.equal((await sdk.contexts.retrieve(createdContext.id)).projectId, server.applicationId);
  const session = await sdk.sessions.create({ browserSettings: { context: { id: createdContext.id, persist: true } } });
  assert.equal(session.contextId, createdContext.id);
  await server.release(session.id);
  await waitForVersion(server, createdContext.id, 1);
  await sdk.contexts.delete(createdContext.id);
  await assert.rejects(async () => sdk.contexts.retrieve(createdContext.id), /404/);
});

test('context requests without a key get 401, and those with a key of another application get 404', async () => {
  const { id } = await createContext(server);
  const otherKey = await createOtherApplicationKey(server);
  for (const [method, path, body] of [
    ['GET', `${CONTEXTS}/${id}`],
    ['DELETE', `${CONTEXTS}/${id}`],
    ['GET', `${CONTEXTS}/${id}/versions`],
    ['GET', `${CONTEXTS}/${id}/storage-state`],
    ['POST', `${CONTEXTS}/${id}/storage-state`, { cookies: [], origins: [] }],
    ['POST', `${CONTEXTS}/${id}/restore`, { version: 1 }],
    ['POST', `${CONTEXTS}/${id}/fork`, {}],
  ] as const) {
    const options = body === undefined ? {} : { body };
    assert.equal((await server.api(method, path, { ...options, key: null })).status, 401, `${method} ${path}`);
    assert.equal((await server.api(method, path, { ...options, key: otherKey })).status, 404, `${method} ${path}`);
  }
  assert.deepEqual((await server.api<Context[]>('GET', CONTEXTS, { key: otherKey })).body, []);
  for (const context of [id, UNKNOWN_ID]) {
    const createOptions = { body: { contextId: context }, key: context === id ? otherKey : server.key };
    const refusal = await server.api('POST', '/v1/browsers/sessions', createOptions);
    assert.equal(refusal.status, 400);
    assert.equal(refusal.body.code, 'unknown_context');
  }
  const sessions = await server.api<unknown[]>('GET', '/v1/browsers/sessions', { key: otherKey });
  assert.deepEqual(sessions.body, [], 'a refused create leaves no session');
});

test('a session leaves no process, file or unfinished database row behind after its context is saved', async () => {
  await server.waitUntilSettled();
});
