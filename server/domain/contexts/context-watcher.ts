// Applies a context to a session: the browser starts from a copy of the newest version. If the session saves to the
// context, its cookies are copied every few seconds, its browser is shut down cleanly, and the saver then saves its
// profile.

import type { Profiles } from '../../engines/profiles/profiles.ts';
import type { ContextRow, ContextRows, ContextUses } from '../../engines/store/rows/contexts.ts';
import type { SessionEnd, SessionRow } from '../../engines/store/rows/sessions.ts';
import { type ContextId, isUuid, type SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { fault } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { SessionRequest, SessionView } from '../sessions/api.ts';
import type { Attendance, Preparation, Remains } from '../sessions/attendance.ts';
import type { LiveSession } from '../sessions/live.ts';
import type { CheckResult, Watcher } from '../sessions/watchers.ts';
import type { ContextLoader } from './context-loader.ts';
import { CookieCopy } from './cookie-copy.ts';
import { shutDownCleanly } from './shut-down-cleanly.ts';
import { type StoredVersions, versionIdOfSession } from './stored-versions.ts';

/** How long a create request waits if the context that it names is still being saved. */
const SAVE_WAIT_MAX_MS = 15_000;
const POLL_INTERVAL_MS = 100;

export interface ContextWatcherParts extends Pick<Runtime, 'clock' | 'log' | 'host'> {
  readonly rows: ContextRows;
  readonly uses: ContextUses;
  readonly loader: ContextLoader;
  readonly storedVersions: StoredVersions;
  readonly profiles: Profiles;
  /** Wakes the saver, because a save may be due. */
  readonly trigger: () => void;
}

/** The data that `check` stores in the settings of the session. */
interface StoredUse {
  readonly id: ContextId;
  readonly persist: boolean;
  readonly exclusive: boolean;
}

type ContextRequest = NonNullable<SessionRequest['watcherSettings']['context']>;

export class ContextWatcher implements Watcher {
  readonly name = 'context';
  readonly #parts: ContextWatcherParts;

  constructor(parts: ContextWatcherParts) {
    this.#parts = parts;
  }

  async check(
    caller: AgentCaller,
    { watcherSettings: { context: contextRequest } }: SessionRequest,
    session: SessionId,
    signal: AbortSignal,
  ): Promise<CheckResult | undefined> {
    if (!contextRequest) return undefined;
    const id = isUuid(contextRequest.id) ? (contextRequest.id as ContextId) : undefined;
    const row = id && (await this.#parts.rows.get(caller.applicationId, id));
    if (!row) throw unknownContext(contextRequest.id);
    const { persist = false, exclusive = false } = contextRequest;
    await this.#awaitTurn(row, contextRequest, session, signal);
    const contextSettings = { id: row.id, persist, exclusive: persist && exclusive };
    return persist
      ? { storedSettings: contextSettings, undo: () => this.#parts.uses.close(session) }
      : { storedSettings: contextSettings };
  }

  async prepare(row: SessionRow): Promise<Preparation | undefined> {
    const context = await this.#readContext(row);
    if (!context || context.version === 0) return undefined;
    return { fill: (place, signal) => this.#parts.loader.fill(row, context, place, signal) };
  }

  async attend(liveSession: LiveSession, row: SessionRow): Promise<Attendance | undefined> {
    const { loader, profiles, storedVersions, clock, log } = this.#parts;
    const cookies = await loader.take(row.id);
    const refusedCount = cookies ? await liveSession.browser.setCookies(cookies) : 0;
    if (refusedCount > 0) log.warn('context.cookies_refused', { sessionId: row.id, refused: refusedCount });
    const context = storedUse(row)?.persist ? await this.#readContext(row) : undefined;
    // If the context has been deleted in the meantime, nothing is saved.
    if (!context) return undefined;
    const staging = profiles.staging(row.id);
    const seal = await storedVersions.cookiesSeal(context, versionIdOfSession(row.id));
    const copy = await CookieCopy.begin({ browser: liveSession.browser, profiles, staging, seal, clock, log });
    let hasCopied = false;
    return {
      beforeShutDown: async () => {
        await copy.finish();
        hasCopied = true;
      },
      shutDown: async end => {
        if (hasCopied && isCleanEnd(end) && (await shutDownCleanly(liveSession, log))) await staging.markClean();
      },
      leave: () => copy.close(),
    };
  }

  async salvage(row: SessionRow, { folder }: Remains): Promise<void> {
    if (!storedUse(row)?.persist) return;
    const { profiles, uses, clock } = this.#parts;
    if (row.end && isCleanEnd(row.end)) await profiles.staging(row.id).moveProfile(folder);
    await uses.markForSaving(row.id, clock.now());
  }

  async describe(row: SessionRow): Promise<Partial<SessionView>> {
    const use = storedUse(row);
    return use ? { browserSettings: { context: { ...use } } } : {};
  }

  ended(row: SessionRow): void {
    this.#parts.loader.forget(row.id);
    if (storedUse(row)?.persist) this.#parts.trigger();
  }

  /**
   * Waits until no other session is saving to the context. If this session saves to the context, records that it uses
   * the context. Throws if the save takes too long, or if this session and another session both request exclusive use.
   */
  async #awaitTurn(
    row: ContextRow,
    contextRequest: ContextRequest,
    session: SessionId,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#parts;
    const beganMs = clock.monotonicMs();
    for (;;) {
      const savingSession = await this.#tryToUse(row, contextRequest, session);
      if (savingSession === undefined) return;
      if (clock.monotonicMs() - beganMs >= SAVE_WAIT_MAX_MS) throw contextSaving(row.id, savingSession);
      await clock.sleep(POLL_INTERVAL_MS, signal);
    }
  }

  /**
   * If the session saves to the context, records that it uses the context. If the save of another session is still in
   * progress, records nothing, and returns the id of that other session. Returns undefined if this session may
   * continue.
   */
  async #tryToUse(row: ContextRow, contextRequest: ContextRequest, session: SessionId): Promise<SessionId | undefined> {
    const { uses, host, clock } = this.#parts;
    const { id: contextId, applicationId } = row;
    if (!contextRequest.persist) return uses.savingSessionOf(applicationId, contextId);
    const newUse = {
      sessionId: session,
      contextId,
      applicationId,
      hostId: host,
      exclusive: contextRequest.exclusive ?? false,
    };
    const outcome = await uses.open({ ...newUse, createdAt: clock.now() });
    if ('savingSession' in outcome) return outcome.savingSession;
    if ('exclusiveSession' in outcome) throw contextHeld(contextId, outcome.exclusiveSession);
    if (!outcome.opened) throw unknownContext(contextId);
    return undefined;
  }

  async #readContext(row: SessionRow): Promise<ContextRow | undefined> {
    const contextUse = storedUse(row);
    return contextUse && this.#parts.rows.get(row.applicationId, contextUse.id);
  }
}

/** Returns the data that `check` stored in the settings of the session. */
function storedUse({ settings }: SessionRow): StoredUse | undefined {
  const { id, persist, exclusive } = (settings.context ?? {}) as JsonObject;
  if (typeof id !== 'string') return undefined;
  return { id: id as ContextId, persist: persist === true, exclusive: exclusive === true };
}

/** Whether the session ended without an error. The profile of a failed session is not saved. */
const isCleanEnd = ({ status }: Pick<SessionEnd, 'status'>): boolean => status !== 'ERROR';

const unknownContext = (id: string) =>
  fault('unknown_context', `Context ${id} does not exist in this application.`, {
    advice: 'Create the context first, or correct the id. The session was not created.',
  });

const contextHeld = (id: string, sessionId: SessionId) =>
  fault('context_in_use', `Session ${sessionId} uses context ${id} exclusively.`, {
    advice:
      'Wait until that session has ended and the context is saved, or omit `exclusive`. The new session was not created.',
    details: { sessionId },
  });

const contextSaving = (id: string, sessionId: SessionId) =>
  fault('context_in_use', `Context ${id} is still being saved by session ${sessionId}.`, {
    advice: 'Send the request again in a few seconds. The new session was not created.',
    details: { sessionId, saving: true },
  });
