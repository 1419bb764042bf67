// Loads the newest readable version of a context into a new browser: files before the browser starts, cookies before
// the first client connects. A damaged version is skipped, and this is recorded as an event of the session.
import type { CookieList, Profiles } from '../../engines/profiles/profiles.ts';
import type { ContextRow, ContextRows, ContextUses, VersionRow } from '../../engines/store/rows/contexts.ts';
import type { EventRows } from '../../engines/store/rows/events.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import { reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { BoxFolder } from '../sessions/attendance.ts';
import type { StoredVersions } from './stored-versions.ts';

export interface ContextLoaderParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly rows: ContextRows;
  readonly uses: ContextUses;
  readonly events: Pick<EventRows, 'append'>;
  readonly storedVersions: StoredVersions;
  readonly profiles: Profiles;
}

interface LoadedCookies {
  readonly cookies: CookieList;
  /** Resolves when the event and the use of the version have been written. */
  readonly writesDone: Promise<unknown>;
}

const SERVICE_ACTOR = { kind: 'service' } as const;

export class ContextLoader {
  readonly #parts: ContextLoaderParts;
  /** Cookies to set once the browser of the session is running. */
  readonly #loadedCookies = new Map<SessionId, LoadedCookies>();

  constructor(parts: ContextLoaderParts) {
    this.#parts = parts;
  }

  /** Copies the files of the context into the session folder before the browser of the session starts. */
  async fill(session: SessionRow, context: ContextRow, { folder }: BoxFolder, signal: AbortSignal): Promise<void> {
    const { rows, uses, clock } = this.#parts;
    const beganMs = clock.monotonicMs();
    const now = clock.now();
    const versions = await rows.versions(context.applicationId, context.id);
    for (const version of versions) {
      if (version.expiresAt && version.expiresAt <= now) continue;
      const cookies = await this.#load(session, context, version, folder, signal);
      if (!cookies) continue;
      const tookMs = Math.round(clock.monotonicMs() - beganMs);
      const detail = { contextId: context.id, version: version.version, tookMs };
      // Not awaited here, so that the browser can start meanwhile. `take` waits for these writes.
      const writesDone = Promise.all([
        uses.recordStart(session.id, version.version),
        this.#recordEvent(session, 'context.restored', detail),
      ]);
      writesDone.catch(() => {});
      this.#loadedCookies.set(session.id, { cookies, writesDone });
      return;
    }
    if (versions.length > 0) throw new Error(`every version of context ${context.id} has expired or is damaged`);
  }

  /** Returns the cookies to set in the session's browser. Can be called once per session. */
  async take(session: SessionId): Promise<CookieList | undefined> {
    const loadedCookies = this.#loadedCookies.get(session);
    this.forget(session);
    await loadedCookies?.writesDone;
    return loadedCookies?.cookies;
  }

  /** Drops the loaded cookies. Called if the session ended before its browser was running. */
  forget(session: SessionId): void {
    this.#loadedCookies.delete(session);
  }

  /** Unpacks the version and returns its cookies. Undefined if the version is damaged. */
  async #load(
    session: SessionRow,
    context: ContextRow,
    version: VersionRow,
    folder: string,
    signal: AbortSignal,
  ): Promise<CookieList | undefined> {
    const { storedVersions, profiles } = this.#parts;
    try {
      const cookies = version.cookiesOf ? await storedVersions.openCookies(context, version.cookiesOf) : [];
      const archive = version.archive && (await storedVersions.openArchive(context, version.archive));
      // Cookies in the archive of a partial version are not unpacked, because they are older than the cookies that were
      // copied from the running browser.
      if (archive) await profiles.unpack(archive, folder, !version.partial, signal);
      return cookies;
    } catch (error) {
      if (!storedVersions.isDamage(error)) throw error;
      const why = reason(error);
      this.#parts.log.error('context.version_damaged', {
        contextId: context.id,
        version: version.version,
        reason: why,
      });
      await this.#recordEvent(session, 'context.version_skipped', {
        contextId: context.id,
        version: version.version,
        reason: why,
      });
      return undefined;
    }
  }

  async #recordEvent(
    session: SessionRow,
    type: 'context.restored' | 'context.version_skipped',
    detail: { readonly [name: string]: string | number },
  ): Promise<void> {
    const { events, clock } = this.#parts;
    await events.append(session.id, { type, at: clock.now(), actor: SERVICE_ACTOR, detail });
  }
}
