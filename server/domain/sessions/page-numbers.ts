// Numbers the pages of a session from 0 in the order of their appearance. Logs, recordings and live views use the same
// numbers, even after an adoption. A number is assigned at once and written to the database afterwards.
import type { PageRow, PageRows } from '../../engines/store/rows/pages.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import { reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { ObservedTarget } from './browser-host.ts';

/** Numbers have at most three digits. Pages beyond this limit have no number. */
export const PAGES_MAX = 1_000;

export interface PageNumbersParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly rows: PageRows;
}

export class PageNumbers {
  readonly #parts: PageNumbersParts;
  readonly #pagesBySession = new WeakMap<object, Promise<SessionPages>>();

  constructor(parts: PageNumbersParts) {
    this.#parts = parts;
  }

  /** Returns the same object for the same live session. */
  of(liveSession: object, row: SessionRow): Promise<SessionPages> {
    const sessionPages = this.#pagesBySession.get(liveSession) ?? this.#load(row);
    this.#pagesBySession.set(liveSession, sessionPages);
    return sessionPages;
  }

  async #load(row: SessionRow): Promise<SessionPages> {
    const isNew = row.status === 'PENDING';
    return new SessionPages(this.#parts, row, isNew ? [] : await this.#parts.rows.list(row.applicationId, row.id));
  }
}

export class SessionPages {
  readonly #parts: PageNumbersParts;
  readonly #row: SessionRow;
  readonly #numberByTarget: Map<string, number>;
  readonly #appearedAtByTarget: Map<string, Date>;
  #unwrittenPages: PageRow[] = [];
  #pendingWrite: Promise<void> | undefined;

  constructor(parts: PageNumbersParts, row: SessionRow, knownPages: readonly PageRow[]) {
    this.#parts = parts;
    this.#row = row;
    this.#numberByTarget = new Map(knownPages.map(({ targetId, number }) => [targetId, number]));
    this.#appearedAtByTarget = new Map(knownPages.map(({ targetId, appearedAt }) => [targetId, appearedAt]));
  }

  /**
   * The number of the page, or of the page that a frame or worker belongs to. Undefined if there is no page, or if the
   * page is beyond PAGES_MAX.
   */
  of(target: ObservedTarget): number | undefined {
    let page: ObservedTarget | undefined = target;
    while (page && page.kind !== 'page') page = page.parent;
    return page && this.#numberOf(page.id);
  }

  /** Returns the number of a page without assigning one. */
  find(targetId: string): number | undefined {
    return this.#numberByTarget.get(targetId);
  }

  /** Undefined for a page without a number. */
  appearedAt(targetId: string): Date | undefined {
    return this.#appearedAtByTarget.get(targetId);
  }

  /** Resolves when each assigned number has been written or could not be written. */
  async whenWritten(): Promise<void> {
    await this.#pendingWrite;
  }

  #numberOf(targetId: string): number | undefined {
    const knownNumber = this.#numberByTarget.get(targetId);
    if (knownNumber !== undefined) return knownNumber;
    const number = this.#numberByTarget.size;
    if (number >= PAGES_MAX) return undefined;
    this.#numberByTarget.set(targetId, number);
    const appearedAt = this.#parts.clock.now();
    this.#appearedAtByTarget.set(targetId, appearedAt);
    this.#unwrittenPages.push({ number, targetId, appearedAt });
    this.#pendingWrite ??= this.#write().finally(() => {
      this.#pendingWrite = undefined;
    });
    return number;
  }

  async #write(): Promise<void> {
    const { rows, log } = this.#parts;
    const { applicationId, id } = this.#row;
    while (this.#unwrittenPages.length > 0) {
      const pages = this.#unwrittenPages;
      this.#unwrittenPages = [];
      try {
        await rows.add(applicationId, id, pages);
      } catch (error) {
        // These pages are written together with the next page.
        this.#unwrittenPages = [...pages, ...this.#unwrittenPages];
        log.warn('session.pages_not_written', { sessionId: id, reason: reason(error) });
        return;
      }
    }
  }
}
