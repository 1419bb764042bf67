// Contexts in the store, on the embedded PostgreSQL: order of saves, retention, and removal.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { openStore } from '../../server/engines/store/open-store.ts';
import type { ContextUse, VersionFacts } from '../../server/engines/store/rows/contexts.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { addMs } from '../../server/kit/clock.ts';
import {
  type AccountId,
  type ApplicationId,
  type ContextId,
  type HostId,
  newId,
  type SessionId,
  type VersionId,
} from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { clockAt, makeTemporaryFolder } from './store-fixtures.ts';

const NOW = new Date('2026-11-20T10:00:00.123Z');
const DAY_MS = 24 * 3_600_000;
const WEEK_LATER = addMs(NOW, 7 * DAY_MS);

interface ContextOptions {
  readonly name?: string;
  readonly owner?: ApplicationId;
}

describe('contexts in the store', () => {
  const scope = new Scope();
  const host = newId<HostId>(NOW);
  let store: Store;
  let application: ApplicationId;

  before(async () => {
    store = scope.own(
      await openStore({ dataDir: makeTemporaryFolder(scope, 'contexts'), log: silentLog, clock: clockAt(NOW) }),
    );
    await store.hosts.announce({ id: host, region: 'local', slots: 50, startedAt: NOW });
    application = await anApplication();
  });
  after(() => scope.close());

  async function anApplication(): Promise<ApplicationId> {
    const account = { id: newId<AccountId>(NOW), name: 'Ada', createdAt: NOW };
    await store.accounts.insert(account);
    const id = newId<ApplicationId>(NOW);
    const row = { id, name: 'Shop', slug: `s-${id}`, billingAccountId: account.id, revision: 1 };
    await store.applications.insert({ ...row, createdAt: NOW, updatedAt: NOW }, account.id, 50);
    return id;
  }

  async function aContext({ name, owner = application }: ContextOptions = {}): Promise<ContextId> {
    const id = newId<ContextId>(NOW);
    const row = {
      id,
      applicationId: owner,
      ...(name ? { name } : {}),
      wrappedKey: randomBytes(8),
      createdAt: NOW,
    };
    assert.equal(await store.contexts.insert(row, 1000), 'inserted');
    return id;
  }

  async function aSession(): Promise<SessionId> {
    const id = newId<SessionId>(NOW);
    const row = { id, applicationId: application, hostId: host, region: 'local', keepAlive: false, userMetadata: {} };
    const outcome = await store.sessions.place({ ...row, settings: {}, createdAt: NOW, expiresAt: addMs(NOW, DAY_MS) });
    assert.ok('placed' in outcome);
    return id;
  }

  const use = (sessionId: SessionId, contextId: ContextId, exclusive = false): Omit<ContextUse, 'tries'> => ({
    ...{ sessionId, contextId, applicationId: application, hostId: host, exclusive, createdAt: NOW },
  });

  const facts = (id: VersionId, more: Partial<VersionFacts> = {}): VersionFacts => ({
    ...{
      source: 'session',
      partial: false,
      sizeBytes: 7,
      archive: { versionId: id, checksum: Buffer.alloc(32) },
      cookiesOf: id,
    },
    ...more,
  });

  const keepParams = (id: VersionId, more: Partial<VersionFacts> = {}, now = NOW) => ({
    ...{ id, now, earlierVersions: { max: 5, until: addMs(now, 7 * DAY_MS) }, facts: facts(id, more) },
  });

  /** Saves a version that shares no stored objects with other versions. */
  async function keep(context: ContextId, owner = application): Promise<VersionId> {
    const id = newId<VersionId>(NOW);
    assert.ok(await store.contexts.reserve(owner, context, { id, source: 'import', now: NOW, until: WEEK_LATER }));
    assert.ok(await store.contexts.keep(owner, context, keepParams(id, { source: 'import' })));
    return id;
  }

  it('versions are numbered, five earlier versions are kept for a week, and the others are removed', async () => {
    const context = await aContext();
    for (let made = 0; made < 8; made++) await keep(context);
    const versions = await store.contexts.versions(application, context);
    assert.deepEqual(
      versions.map(({ version, expiresAt }) => [version, expiresAt?.getTime()]),
      [8, 7, 6, 5, 4, 3].map(version => [version, version === 8 ? undefined : WEEK_LATER.getTime()]),
    );
    const removableVersions = await store.contexts.takeRemovable(NOW, 10);
    assert.equal(removableVersions.length, 2);
    assert.ok(removableVersions.every(({ id, archiveOf, cookiesOf }) => archiveOf === id && cookiesOf === id));
    assert.deepEqual(await store.contexts.takeRemovable(NOW, 10), [], 'their removal has already begun');
    assert.equal((await store.contexts.takeRemovable(addMs(NOW, 3_600_000), 10)).length, 2, 'an interrupted removal');
    await store.contexts.forget(removableVersions.map(({ id }) => id));
    const expiredVersions = await store.contexts.takeRemovable(WEEK_LATER, 10);
    assert.equal(expiredVersions.length, 5, 'the week for which earlier versions are kept is over');
    await store.contexts.forget(expiredVersions.map(({ id }) => id));
    assert.deepEqual(
      (await store.contexts.versions(application, context)).map(({ version }) => version),
      [8],
    );
  });

  it('an archive that another version uses is kept', async () => {
    const context = await aContext();
    const first = await keep(context);
    for (let made = 0; made < 4; made++) await keep(context);
    const restoredId = newId<VersionId>(NOW);
    const sharedFacts = {
      archive: { versionId: first, checksum: Buffer.alloc(32) },
      cookiesOf: first,
      source: 'restore' as const,
    };
    assert.ok(await store.contexts.keep(application, context, keepParams(restoredId, sharedFacts)));
    const partialId = newId<VersionId>(NOW);
    const reservation = { id: partialId, source: 'session', archiveOf: first, now: NOW, until: WEEK_LATER } as const;
    assert.ok(await store.contexts.reserve(application, context, reservation));
    for (let made = 0; made < 2; made++) await keep(context);
    const removableVersions = await store.contexts.takeRemovable(NOW, 10);
    assert.deepEqual(
      removableVersions.find(({ id }) => id === first),
      { id: first, applicationId: application, contextId: context },
    );
    await store.contexts.abandon(partialId, NOW);
    const abandonedVersions = await store.contexts.takeRemovable(NOW, 10);
    assert.deepEqual(
      abandonedVersions.map(({ id, archiveOf, cookiesOf }) => ({ id, archiveOf, cookiesOf })),
      [{ id: partialId, archiveOf: undefined, cookiesOf: partialId }],
    );
  });

  it('an archive that several versions use is counted once, until none of these versions is kept', async () => {
    const owner = await anApplication();
    const context = await aContext({ owner });
    const first = await keep(context, owner);
    const sharedFacts = { archive: { versionId: first, checksum: Buffer.alloc(32) }, partial: true } as const;
    const readStoredBytes = () => store.storedBytes.ofApplication(owner);
    for (let made = 0; made < 6; made++) {
      const partialId = newId<VersionId>(NOW);
      assert.ok(
        await store.contexts.keep(owner, context, keepParams(partialId, { ...sharedFacts, cookiesOf: partialId })),
      );
      assert.equal(await readStoredBytes(), 7);
    }
    const kept = await store.contexts.versions(owner, context);
    assert.ok(kept.every(({ id }) => id !== first));
    assert.ok(await store.contexts.destroy(owner, context, NOW));
    assert.equal(await readStoredBytes(), 0);
    await store.contexts.forget((await store.contexts.takeRemovable(NOW, 100)).map(({ id }) => id));
  });

  it('a destroyed context has no versions and accepts no saves or sessions', async () => {
    const context = await aContext({ name: 'Mine' });
    const version = await keep(context);
    const session = await aSession();
    assert.deepEqual(await store.contextUses.open(use(session, context)), { opened: true });
    assert.equal(await store.contexts.destroy(await anApplication(), context, NOW), false);
    assert.equal(await store.contexts.destroy(application, context, NOW), true);
    assert.equal(await store.contexts.destroy(application, context, NOW), false);
    assert.equal(await store.contexts.get(application, context), undefined);
    assert.deepEqual(await store.contexts.versions(application, context), []);
    const reservation = { id: newId<VersionId>(NOW), source: 'session', now: NOW, until: WEEK_LATER } as const;
    assert.equal(await store.contexts.reserve(application, context, reservation), false);
    assert.equal(await store.contexts.keep(application, context, keepParams(newId<VersionId>(NOW))), undefined);
    assert.deepEqual(await store.contextUses.open(use(await aSession(), context)), { opened: false });
    const removableVersions = await store.contexts.takeRemovable(NOW, 10);
    assert.deepEqual(
      removableVersions.map(({ id }) => id),
      [version],
    );
    await store.contexts.forget(removableVersions.map(({ id }) => id));
    await store.contextUses.close(session);
    await store.contexts.forget([]);
    await aContext({ name: 'mine' });
  });

  it('a context allows one exclusive use and any number of other uses at a time, and no use while a save is in progress', async () => {
    const context = await aContext();
    const sessions = await Promise.all(Array.from({ length: 6 }, aSession));
    const outcomes = await Promise.all(sessions.map(id => store.contextUses.open(use(id, context, true))));
    assert.equal(outcomes.filter(outcome => 'opened' in outcome).length, 1, 'one of six concurrent uses');
    const exclusiveHolder = sessions[outcomes.findIndex(outcome => 'opened' in outcome)];
    assert.ok(exclusiveHolder);
    const plainSession = await aSession();
    assert.deepEqual(await store.contextUses.open(use(plainSession, context)), { opened: true });
    assert.deepEqual(await store.contextUses.open(use(await aSession(), context, true)), {
      exclusiveSession: exclusiveHolder,
    });
    await store.contextUses.markForSaving(exclusiveHolder, NOW);
    assert.deepEqual(await store.contextUses.open(use(await aSession(), context)), { savingSession: exclusiveHolder });
    assert.equal(await store.contextUses.savingSessionOf(application, context), exclusiveHolder);
    await store.contextUses.close(exclusiveHolder);
    assert.equal(await store.contextUses.savingSessionOf(application, context), undefined);
  });

  it('saves are made in the order in which sessions ended, and superseded versions are reported', async () => {
    const context = await aContext();
    const [first, second] = [await aSession(), await aSession()];
    for (const session of [first, second]) await store.contextUses.open(use(session, context));
    await store.contextUses.markForSaving(second, addMs(NOW, 2000));
    await store.contextUses.markForSaving(first, addMs(NOW, 1000));
    const due = (at: Date) =>
      store.contextUses.due(host, at, 10).then(found => found.map(({ sessionId }) => sessionId));
    const soon = addMs(NOW, 5000);
    assert.deepEqual(await due(soon), [first]);
    await store.contextUses.retry(first, addMs(NOW, 60_000));
    assert.deepEqual(await due(soon), [], 'the second waits for the first');
    const save = (session: SessionId) => {
      const id = session as string as VersionId;
      const events: string[] = [];
      return store.contexts
        .keep(application, context, keepParams(id, { sessionId: session }), {
          id: session,
          events: ({ overtakenVersion }) => {
            events.push(overtakenVersion?.sessionId ?? 'nothing');
            return [];
          },
        })
        .then(kept => [kept?.context.version, ...events]);
    };
    assert.deepEqual(await save(first), [1, 'nothing']);
    assert.deepEqual(await due(soon), [second]);
    assert.deepEqual(await save(second), [2, first]);
    assert.equal((await store.contexts.get(application, context))?.lastSessionId, second);
    assert.equal(await store.contextUses.get(second), undefined);
  });

  it('context uses whose session has ended or was never placed are found', async () => {
    const context = await aContext();
    const [ended, never] = [await aSession(), newId<SessionId>(NOW)];
    for (const session of [ended, never, await aSession()]) await store.contextUses.open(use(session, context));
    const findOrphans = async (before: Date) =>
      (await store.contextUses.orphans(host, before)).filter(id => id === ended || id === never).sort();
    assert.deepEqual(await findOrphans(NOW), []);
    await store.sessions.decideEnd(ended, { status: 'COMPLETED', reason: 'operator' }, NOW);
    await store.sessions.finish(ended, NOW, 0);
    assert.deepEqual(await findOrphans(NOW), [ended]);
    assert.deepEqual(await findOrphans(addMs(NOW, 1)), [ended, never].sort());
  });

  it('a failed save is recorded once, even after the session has ended', async () => {
    const context = await aContext();
    const session = await aSession();
    await store.contextUses.open(use(session, context));
    await store.sessions.decideEnd(session, { status: 'ERROR', reason: 'crashed' }, NOW);
    await store.sessions.finish(session, NOW, 0);
    const actor = { kind: 'service' } as const;
    await store.contextUses.fail({
      session,
      type: 'context.save_failed',
      at: NOW,
      actor,
      detail: { contextId: context },
    });
    await store.contextUses.fail({ session, type: 'context.save_failed', at: NOW, actor, detail: { twice: true } });
    const { events } = await store.events.read(application, { after: 0, session, limit: 100 });
    assert.deepEqual(
      events.slice(-2).map(({ type }) => type),
      ['session.ended', 'context.save_failed'],
    );
  });
});
