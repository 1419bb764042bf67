// The logs of all sessions that run here. One loop makes durable about once a second what they have taken.

import type { LogRows } from '../../engines/store/rows/logs.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { Clock } from '../../kit/clock.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import { entryOf } from './entry.ts';
import { redactUrl } from './redact.ts';
import { SessionLog } from './session-log.ts';

export interface LogBookParts {
  readonly rows: Pick<LogRows, 'write' | 'last'>;
  readonly clock: Clock;
  readonly log: Log;
}

export interface BlockedNavigation {
  readonly url: string;
  /** The rule. */
  readonly reason: string;
  /** Of the page. */
  readonly targetId: string;
}

export class LogBook {
  readonly #parts: LogBookParts;
  readonly #open = new Map<SessionId, SessionLog>();

  constructor(parts: LogBookParts) {
    this.#parts = parts;
  }

  /** Goes on where a former process left off, with a marker of the time in which nobody listened. */
  async begin(row: SessionRow): Promise<SessionLog> {
    const { rows, clock } = this.#parts;
    const isNew = row.status === 'PENDING';
    const standing = isNew ? undefined : await rows.last(row.applicationId, row.id);
    const parts = { ...this.#parts, application: row.applicationId, session: row.id };
    const log = new SessionLog(parts, standing && { ...standing, heardUntilMs: heardUntil(standing.lines) });
    if (!isNew) log.gap((standing?.written ?? row.startedAt ?? row.createdAt).getTime(), clock.now().getTime());
    this.#open.set(row.id, log);
    return log;
  }

  async end(session: SessionId): Promise<void> {
    const log = this.#open.get(session);
    this.#open.delete(session);
    await log?.close();
  }

  /** The session's rules refused to let a page go there. Nothing happens where there is no log. */
  navigationBlocked(session: SessionId, { url, reason, targetId }: BlockedNavigation): void {
    const log = this.#open.get(session);
    const page = log?.pageOf?.(targetId);
    const place = { frameId: targetId, ...(page === undefined ? {} : { page }) };
    const at = this.#parts.clock.now().getTime();
    log?.add({ at, kind: 'page', method: 'Page.navigationBlocked', ...place, params: { url: redactUrl(url), reason } });
  }

  /** A task of the clock. */
  async write(): Promise<{ failed: number }> {
    await Promise.all([...this.#open.values()].map(log => log.write()));
    return { failed: 0 };
  }
}

/** By the last chunk: where a console said nothing in it, nothing was said since it began. */
function heardUntil(lines: readonly string[]): number {
  const entries = lines.map(entryOf).filter(entry => entry !== undefined);
  if (entries.length === 0) return 0;
  const said = entries.filter(({ kind }) => kind === 'console').map(({ at }) => at);
  return said.length > 0 ? Math.max(...said) : Math.min(...entries.map(({ at }) => at));
}
