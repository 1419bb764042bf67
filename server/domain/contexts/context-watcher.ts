// What a session does with its context: starts from a copy of the newest version, and where it shall persist, copies its
// cookies aside while it runs, closes its browser in order, and leaves the profile for the saver.
import type { Profiles } from '../../engines/profiles/profiles.ts';
import type { ContextRow, ContextRows, ContextUses } from '../../engines/store/rows/contexts.ts';
import type { JsonObject } from '../../engines/store/rows/json.ts';
import type { SessionEnd, SessionRow } from '../../engines/store/rows/sessions.ts';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { type ContextId, type HostId, isUuid, type SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import { within } from '../../kit/wait.ts';
import { fault } from '../faults.ts';
import type { AgentCaller } from '../identity/caller.ts';
import type { SessionWish } from '../sessions/api.ts';
import type { LiveSession } from '../sessions/live.ts';
import type { Attendance, Checked, Preparation, Remains, Watcher } from '../sessions/watchers.ts';
import { CookieCopy } from './cookie-copy.ts';
import type { Loading } from './loading.ts';
import { type StoredVersions, versionOfSession } from './stored-versions.ts';

/** A create that names a context whose save is under way waits this long for it. */
const SAVE_WAIT_MS = 15_000;
const LOOK_EVERY_MS = 100;
/** Chromium needs a quarter of a second; after this it is killed, and its files are not trusted. */
const CLOSES_WITHIN_MS = 5_000;

export interface ContextWatcherParts {
  readonly rows: ContextRows;
  readonly uses: ContextUses;
  readonly loading: Loading;
  readonly stored: StoredVersions;
  readonly profiles: Profiles;
  readonly host: HostId;
  readonly clock: Clock;
  readonly log: Log;
  /** A save may be due. */
  readonly prompt: () => void;
}

/** What stands in the session's settings. */
interface Kept {
  readonly id: ContextId;
  readonly persist: boolean;
}

type Asked = NonNullable<SessionWish['asks']['context']>;

export class ContextWatcher implements Watcher {
  readonly name = 'context';
  readonly #parts: ContextWatcherParts;

  constructor(parts: ContextWatcherParts) {
    this.#parts = parts;
  }

  async check(
    caller: AgentCaller,
    { asks: { context: asked } }: SessionWish,
    session: SessionId,
    signal: AbortSignal,
  ): Promise<Checked | undefined> {
    if (!asked) return undefined;
    const id = isUuid(asked.id) ? (asked.id as ContextId) : undefined;
    const row = id && (await this.#parts.rows.get(caller.applicationId, id));
    if (!row) throw unknownContext(asked.id);
    const { persist = false, exclusive = false } = asked;
    await this.#takeTurn(row, asked, session, signal);
    const kept = { id: row.id, persist, exclusive: persist && exclusive };
    return persist ? { kept, undo: () => this.#parts.uses.close(session) } : { kept };
  }

  async prepare(row: SessionRow): Promise<Preparation | undefined> {
    const context = await this.#contextOf(row);
    if (!context || context.version === 0) return undefined;
    return { fill: (place, signal) => this.#parts.loading.fill(row, context, place, signal) };
  }

  async attend(live: LiveSession, row: SessionRow): Promise<Attendance | undefined> {
    const { loading, profiles, stored, clock, log } = this.#parts;
    const cookies = await loading.take(row.id);
    const refused = cookies ? await live.browser.setCookies(cookies) : 0;
    if (refused > 0) log.warn('context.cookies_refused', { sessionId: row.id, refused });
    const context = keptOf(row)?.persist ? await this.#contextOf(row) : undefined;
    // A context that was deleted is not saved into any more.
    if (!context) return undefined;
    const staging = profiles.staging(row.id);
    const seal = stored.cookiesSeal(context, versionOfSession(row.id));
    const copy = await CookieCopy.begin({ browser: live.browser, profiles, staging, seal, clock, log });
    let isCopied = false;
    return {
      lastWords: async () => {
        await copy.finish();
        isCopied = true;
      },
      shutDown: async end => {
        if (isCopied && isInOrder(end) && (await closes(live))) await staging.markClean();
      },
      leave: () => copy.close(),
    };
  }

  async salvage(row: SessionRow, { folder }: Remains): Promise<void> {
    if (!keptOf(row)?.persist) return;
    const { profiles, uses, clock } = this.#parts;
    if (row.end && isInOrder(row.end)) await profiles.staging(row.id).takeProfile(folder);
    await uses.toSave(row.id, clock.now());
  }

  ended(row: SessionRow): void {
    this.#parts.loading.forget(row.id);
    if (keptOf(row)?.persist) this.#parts.prompt();
  }

  /** Waits for a save under way. Where the session will save, the context's use is written, which may be refused. */
  async #takeTurn(row: ContextRow, asked: Asked, session: SessionId, signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    const began = clock.monotonicMs();
    for (;;) {
      const saving = await this.#tryTurn(row, asked, session);
      if (saving === undefined) return;
      if (clock.monotonicMs() - began >= SAVE_WAIT_MS) throw stillSaving(row.id, saving);
      await clock.sleep(LOOK_EVERY_MS, signal);
    }
  }

  /** The session whose save is under way; undefined when it is our turn. */
  async #tryTurn(row: ContextRow, asked: Asked, session: SessionId): Promise<SessionId | undefined> {
    const { uses, host, clock } = this.#parts;
    const { id: contextId, applicationId } = row;
    if (!asked.persist) return uses.savingOf(applicationId, contextId);
    const own = { sessionId: session, contextId, applicationId, hostId: host, exclusive: asked.exclusive ?? false };
    const outcome = await uses.open({ ...own, createdAt: clock.now() });
    if ('saving' in outcome) return outcome.saving;
    if ('held' in outcome) throw heldBy(contextId, outcome.held);
    if (!outcome.opened) throw unknownContext(contextId);
    return undefined;
  }

  async #contextOf(row: SessionRow): Promise<ContextRow | undefined> {
    const kept = keptOf(row);
    return kept && this.#parts.rows.get(row.applicationId, kept.id);
  }
}

/** Written by `check`. */
function keptOf({ settings }: SessionRow): Kept | undefined {
  const { id, persist } = (settings.context ?? {}) as JsonObject;
  return typeof id === 'string' ? { id: id as ContextId, persist: persist === true } : undefined;
}

/** What a failed session leaves in its profile is not trusted. */
export const isInOrder = ({ status }: Pick<SessionEnd, 'status'>): boolean => status !== 'ERROR';

/** Whether the browser went by itself, with everything written. */
async function closes({ browser, box }: LiveSession): Promise<boolean> {
  await browser.shutDown();
  const gone = await within(CLOSES_WITHIN_MS, 'the browser to close', () => box.gone).catch(reason);
  return typeof gone === 'object' && gone.why === 'exited';
}

const unknownContext = (id: string) =>
  fault('unknown_context', `Context ${id} does not exist in this application.`, {
    advice: 'Create the context first, or correct the id. The session was not created.',
  });

const heldBy = (id: string, sessionId: SessionId) =>
  fault('context_in_use', `Session ${sessionId} uses context ${id} exclusively.`, {
    advice: 'Wait until that session has ended and is saved, or omit `exclusive`. The session was not created.',
    details: { sessionId },
  });

const stillSaving = (id: string, sessionId: SessionId) =>
  fault('context_in_use', `Context ${id} is still being saved by session ${sessionId}.`, {
    advice: 'Send the request again in a few seconds. The session was not created.',
    details: { sessionId, saving: true },
  });
