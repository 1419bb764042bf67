// The logs of all sessions on this host. A task writes their new entries about once a second.

import type { LogRows } from '../../engines/store/rows/logs.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { entryOf } from './entry.ts';
import { redactUrl } from './redact.ts';
import { SessionLog } from './session-log.ts';
import { withoutTypedText } from './typed-by-person.ts';

export interface LogBookParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly rows: Pick<LogRows, 'write' | 'lastPosition'>;
}

export interface BlockedNavigation {
  readonly url: string;
  /** The rule that refused the navigation. */
  readonly reason: string;
  /** Target id of the page. */
  readonly targetId: string;
  /** Whether a person has control in a masked hand-off. The address may then contain text that the person typed. */
  readonly isCovered: boolean;
}

export class LogBook {
  readonly #parts: LogBookParts;
  readonly #openLogs = new Map<SessionId, SessionLog>();

  constructor(parts: LogBookParts) {
    this.#parts = parts;
  }

  /** Opens the log of a session. After an adoption, continues the log and marks the period that is missing. */
  async begin(row: SessionRow): Promise<SessionLog> {
    const { rows, clock } = this.#parts;
    const isNew = row.status === 'PENDING';
    const storedPosition = isNew ? undefined : await rows.lastPosition(row.applicationId, row.id);
    const parts = { ...this.#parts, application: row.applicationId, session: row.id };
    const log = new SessionLog(
      parts,
      storedPosition && { ...storedPosition, consoleStoredUntilMs: consoleStoredUntil(storedPosition.lines) },
    );
    if (!isNew)
      log.markGap((storedPosition?.written ?? row.startedAt ?? row.createdAt).getTime(), clock.now().getTime());
    this.#openLogs.set(row.id, log);
    return log;
  }

  async end(session: SessionId): Promise<void> {
    const log = this.#openLogs.get(session);
    this.#openLogs.delete(session);
    await log?.close();
  }

  /** Logs that the session's network rules refused a navigation. Does nothing if the session has no log. */
  logBlockedNavigation(session: SessionId, { url, reason, targetId, isCovered }: BlockedNavigation): void {
    const log = this.#openLogs.get(session);
    const page = log?.pageOf?.(targetId);
    const pageFields = { frameId: targetId, ...(page === undefined ? {} : { page }) };
    const at = this.#parts.clock.now().getTime();
    const params = { url: redactUrl(log?.secrets.clean(url) ?? ''), reason };
    const loggedParams = isCovered ? withoutTypedText(params) : params;
    log?.add({ at, kind: 'page', method: 'Page.navigationBlocked', ...pageFields, params: loggedParams });
  }

  /** Writes the new entries of all logs. Run by a clock task. */
  async write(): Promise<{ failed: number }> {
    await Promise.all([...this.#openLogs.values()].map(log => log.write()));
    return { failed: 0 };
  }
}

/**
 * Returns the time up to which console messages are stored, according to the last chunk: the time of its last console
 * message or, if it contains none, the time of its first entry.
 */
function consoleStoredUntil(lines: readonly string[]): number {
  const entries = lines.map(entryOf).filter(entry => entry !== undefined);
  if (entries.length === 0) return 0;
  const consoleTimes = entries.filter(({ kind }) => kind === 'console').map(({ at }) => at);
  return consoleTimes.length > 0 ? Math.max(...consoleTimes) : Math.min(...entries.map(({ at }) => at));
}
