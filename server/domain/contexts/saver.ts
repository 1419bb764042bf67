// Makes versions from the profiles of ended sessions, and removes versions that have expired. All state is in rows and
// in the staging folder, and every step may be repeated, so a new process continues where the previous one stopped.

import type { Profiles, Staging } from '../../engines/profiles/profiles.ts';
import type {
  AddressedEvent,
  ContextRow,
  ContextRows,
  ContextUse,
  ContextUses,
  KeptVersion,
  VersionFacts,
} from '../../engines/store/rows/contexts.ts';
import type { SessionEventType } from '../../engines/store/rows/events.ts';
import type { SessionRows } from '../../engines/store/rows/sessions.ts';
import { addMs } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import { withTimeout } from '../../kit/wait.ts';
import { retentionFields } from './earlier-versions.ts';
import { type StoredVersions, versionIdOfSession } from './stored-versions.ts';

/** Maximum number of concurrent saves. Each save runs tar in its own jail. Further saves wait in the database. */
const CONCURRENT_SAVES_MAX = 4;
const SAVE_TIMEOUT_MS = 600_000;
const BATCH_MAX = 50;
const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 60_000;
/** A save is given up after storage has been unavailable for this long. */
const GIVE_UP_AFTER_MS = 24 * 3_600_000;
/** If a use of a context has no session row after this time, the create request for the session was interrupted. */
const ORPHAN_AGE_MIN_MS = 5 * 60_000;
const CLOSE_WAIT_MAX_MS = 3_000;

export interface SaverParts extends Pick<Runtime, 'clock' | 'log' | 'host'> {
  readonly rows: ContextRows;
  readonly uses: ContextUses;
  readonly sessions: Pick<SessionRows, 'byId'>;
  readonly storedVersions: StoredVersions;
  readonly profiles: Profiles;
}

/** The session ran, but there is neither a profile nor a copy of its cookies. */
class NothingToSave extends Error {
  override readonly name = 'NothingToSave';
}

export class Saver implements Closeable {
  readonly #parts: SaverParts;
  readonly #runningSaves = new Map<SessionId, Promise<void>>();
  readonly #closeController = new AbortController();

  constructor(parts: SaverParts) {
    this.#parts = parts;
  }

  /** Removes staging folders that no row refers to. Must run at startup, after running sessions have been adopted. */
  async recover(): Promise<void> {
    const { uses, profiles, host } = this.#parts;
    const knownSessions = new Set<string>(await uses.ofHost(host));
    for (const id of await profiles.stagedSessions()) if (!knownSessions.has(id)) await profiles.staging(id).remove();
  }

  /** Starts the saves that are due, without waiting for them, and removes expired versions. */
  async reconcile(): Promise<{ begun: number; removed: number }> {
    const { uses, host, clock } = this.#parts;
    const now = clock.now();
    for (const session of await uses.orphans(host, addMs(now, -ORPHAN_AGE_MIN_MS)))
      await uses.markForSaving(session, now);
    const runningBefore = new Set(this.#runningSaves.keys());
    const dueUses = await uses.due(host, now, BATCH_MAX);
    const usesToSave = dueUses
      // A save that ends while the uses are read must not begin again.
      .filter(({ sessionId }) => !runningBefore.has(sessionId))
      .slice(0, CONCURRENT_SAVES_MAX - this.#runningSaves.size);
    if (!this.#closeController.signal.aborted) for (const use of usesToSave) this.#begin(use);
    return { begun: usesToSave.length, removed: await this.#remove(now) };
  }

  /** Waits a short time for running saves, and then interrupts those that remain. The next process continues them. */
  async close(): Promise<void> {
    const waitForSaves = (): Promise<unknown> => Promise.all(this.#runningSaves.values());
    await withTimeout(CLOSE_WAIT_MAX_MS, 'saves of contexts', waitForSaves).catch(() => {});
    this.#closeController.abort(new Error('the service is stopping'));
    await waitForSaves();
  }

  #begin(use: ContextUse): void {
    const savePromise = this.#save(use).finally(() => {
      this.#runningSaves.delete(use.sessionId);
    });
    this.#runningSaves.set(use.sessionId, savePromise);
  }

  async #save(use: ContextUse): Promise<void> {
    const { clock, log } = this.#parts;
    const beganMs = clock.monotonicMs();
    try {
      const version = await withTimeout(
        SAVE_TIMEOUT_MS,
        'a context to be saved',
        signal => this.#trySave(use, signal),
        this.#closeController.signal,
      );
      const tookMs = Math.round(clock.monotonicMs() - beganMs);
      log.info('context.saved', { sessionId: use.sessionId, contextId: use.contextId, version, tookMs });
    } catch (error) {
      await this.#handleFailure(use, error).catch(problem =>
        log.error('context.failure_not_written', { sessionId: use.sessionId, reason: reason(problem) }),
      );
    }
  }

  /** Returns the number of the new version, or 0 if there was nothing to save. */
  async #trySave(use: ContextUse, signal: AbortSignal): Promise<number> {
    const { rows, profiles } = this.#parts;
    const staging = profiles.staging(use.sessionId);
    const context = await rows.get(use.applicationId, use.contextId);
    if (!context) return this.#discard(use, staging);
    const cookies = await staging.readCookies();
    const hasWholeProfile = (await staging.packedRecord()) !== undefined || (await staging.hasProfile());
    if (!cookies) return this.#closeWithoutSave(use, staging);
    const facts = hasWholeProfile
      ? await this.#storeWhole(use, context, staging, cookies, signal)
      : await this.#storePartial(use, context, cookies, signal);
    if (!facts) return this.#discard(use, staging);
    const storedVersion = await this.#keep(use, facts);
    await staging.remove();
    return storedVersion?.context.version ?? 0;
  }

  async #storeWhole(
    use: ContextUse,
    context: ContextRow,
    staging: Staging,
    cookies: Buffer,
    signal: AbortSignal,
  ): Promise<VersionFacts | undefined> {
    const { profiles, storedVersions } = this.#parts;
    const id = versionIdOfSession(use.sessionId);
    if (!(await this.#reserve(use))) return undefined;
    const packedArchive = await profiles.pack(staging, await storedVersions.archiveSeal(context, id), signal);
    await storedVersions.storeCookies(context, id, cookies, signal);
    await storedVersions.storeArchive(context, id, staging.archiveFile, signal);
    const archive = { versionId: id, checksum: packedArchive.checksum };
    if (packedArchive.skipped > 0)
      this.#parts.log.warn('context.entries_skipped', { sessionId: use.sessionId, skipped: packedArchive.skipped });
    return { ...sessionSource(use), partial: false, sizeBytes: packedArchive.sizeBytes, archive, cookiesOf: id };
  }

  /**
   * Stores a version that consists of the archive that the session started from, and the cookies that were copied while
   * the session was running.
   */
  async #storePartial(
    use: ContextUse,
    context: ContextRow,
    cookies: Buffer,
    signal: AbortSignal,
  ): Promise<VersionFacts | undefined> {
    const { rows, storedVersions } = this.#parts;
    const versions = await rows.versions(use.applicationId, use.contextId);
    const baseVersion = versions.find(({ version }) => version === use.fromVersion) ?? versions[0];
    const archive = use.fromVersion === undefined ? undefined : baseVersion?.archive;
    if (!(await this.#reserve(use, archive?.versionId))) return undefined;
    const id = versionIdOfSession(use.sessionId);
    await storedVersions.storeCookies(context, id, cookies, signal);
    const sizeBytes = archive ? (baseVersion?.sizeBytes ?? 0) : 0;
    return { ...sessionSource(use), partial: true, sizeBytes, ...(archive ? { archive } : {}), cookiesOf: id };
  }

  #reserve(use: ContextUse, archiveOf?: ReturnType<typeof versionIdOfSession>): Promise<boolean> {
    const now = this.#parts.clock.now();
    return this.#parts.rows.reserve(use.applicationId, use.contextId, {
      ...{ id: versionIdOfSession(use.sessionId), source: 'session', now, until: addMs(now, 2 * GIVE_UP_AFTER_MS) },
      ...(archiveOf ? { archiveOf } : {}),
    });
  }

  async #keep(use: ContextUse, facts: VersionFacts): Promise<KeptVersion | undefined> {
    const { rows, clock } = this.#parts;
    const now = clock.now();
    const version = { ...retentionFields(now), id: versionIdOfSession(use.sessionId), facts };
    const events = (keptVersion: KeptVersion): AddressedEvent[] => savedEventsOf(use, facts, keptVersion, now);
    return rows.keep(use.applicationId, use.contextId, version, { id: use.sessionId, events });
  }

  /** Discards the data that was to be saved, because the context was deleted. */
  async #discard(use: ContextUse, staging: Staging): Promise<number> {
    const { rows, uses, clock } = this.#parts;
    await rows.abandon(versionIdOfSession(use.sessionId), clock.now());
    await staging.remove();
    await uses.close(use.sessionId);
    return 0;
  }

  /**
   * Closes the context use of a session that has nothing to save. If the session ran, throws instead: cookies should
   * have been copied, so the save has failed.
   */
  async #closeWithoutSave(use: ContextUse, staging: Staging): Promise<number> {
    const session = await this.#parts.sessions.byId(use.sessionId);
    if (session?.startedAt) throw new NothingToSave('the browser ended before any cookies were copied');
    return this.#discard(use, staging);
  }

  async #handleFailure(use: ContextUse, error: unknown): Promise<void> {
    const { rows, uses, profiles, clock, log } = this.#parts;
    const now = clock.now();
    const why = reason(error);
    const isFinal =
      error instanceof NothingToSave ||
      profiles.isRefusal(error) ||
      (use.savingSince !== undefined && addMs(use.savingSince, GIVE_UP_AFTER_MS) <= now);
    log[isFinal ? 'error' : 'warn']('context.save_failed', {
      sessionId: use.sessionId,
      tries: use.tries + 1,
      reason: why,
    });
    if (!isFinal) {
      const retryDelayMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(use.tries, 10));
      return uses.retry(use.sessionId, addMs(now, retryDelayMs));
    }
    await rows.abandon(versionIdOfSession(use.sessionId), now);
    await uses.fail(serviceEvent(now, use.sessionId, 'context.save_failed', { contextId: use.contextId, reason: why }));
    await profiles.staging(use.sessionId).remove();
  }

  async #remove(now: Date): Promise<number> {
    const { rows, storedVersions } = this.#parts;
    const removableVersions = await rows.takeRemovable(now, BATCH_MAX);
    for (const version of removableVersions) await storedVersions.remove(version);
    await rows.forget(removableVersions.map(({ id }) => id));
    return removableVersions.length;
  }
}

const sessionSource = ({ sessionId }: ContextUse) => ({ source: 'session', sessionId }) as const;

const serviceEvent = (at: Date, session: SessionId, type: SessionEventType, detail: JsonObject): AddressedEvent => ({
  session,
  type,
  at,
  actor: { kind: 'service' },
  detail,
});

function savedEventsOf(
  use: ContextUse,
  facts: VersionFacts,
  { context, overtakenVersion }: KeptVersion,
  now: Date,
): AddressedEvent[] {
  const { id: contextId, version } = context;
  const type = facts.partial ? 'context.saved_partially' : 'context.saved';
  const savedEvent = serviceEvent(now, use.sessionId, type, {
    ...{ contextId, version, sizeBytes: facts.sizeBytes },
    ...(overtakenVersion ? { overtook: overtakenVersion.version } : {}),
  });
  if (!overtakenVersion?.sessionId) return [savedEvent];
  const overtakenDetail = { contextId, version: overtakenVersion.version, by: use.sessionId, byVersion: version };
  return [serviceEvent(now, overtakenVersion.sessionId, 'context.overtaken', overtakenDetail), savedEvent];
}
