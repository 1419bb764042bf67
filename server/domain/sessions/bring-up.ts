// From a row to a running browser, and back from a former process's browser to a live session. Everything that was
// started is undone in reverse when a step fails.
import type { Box, BoxRecord } from '../../engines/slots/slots.ts';
import type { SessionRow, SessionRows } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Log } from '../../kit/log.ts';
import { Scope } from '../../kit/scope.ts';
import { withDeadline } from '../../kit/wait.ts';
import { diskFull } from '../faults.ts';
import { LiveSession } from './live.ts';
import type { Browser, Machinery } from './machinery.ts';
import { Presence, type PresenceParts } from './presence.ts';

/** A create answers within this, whatever happens. */
export const BROWSER_START_MS = 30_000;

export interface BringUpParts {
  readonly machinery: Machinery;
  readonly rows: SessionRows;
  readonly clock: Clock;
  readonly log: Log;
  readonly presence: PresenceParts;
}

export class BringUp {
  readonly #parts: BringUpParts;

  constructor(parts: BringUpParts) {
    this.#parts = parts;
  }

  /** Refuses before anything was begun, while there is still room for what already runs. */
  async demandDiskRoom(): Promise<void> {
    const room = await this.#parts.machinery.slots.diskRoom();
    if (room.freeBytes < room.leastBytes) throw diskFull(room.freeBytes, room.leastBytes);
  }

  start(row: SessionRow, signal: AbortSignal): Promise<LiveSession> {
    const { machinery } = this.#parts;
    return withDeadline(
      BROWSER_START_MS,
      'the browser to start',
      async inner => {
        const box = await machinery.startBox(row.id, inner);
        return this.#assemble(row, box, () => machinery.meetBrowser(box, inner));
      },
      signal,
    );
  }

  /** Undefined when the browser is gone. */
  async adopt(row: SessionRow, record: BoxRecord): Promise<LiveSession | undefined> {
    const { machinery } = this.#parts;
    return withDeadline(BROWSER_START_MS, 'a running browser to be adopted', async inner => {
      const box = await machinery.slots.adopt(row.id, record, inner);
      return box && this.#assemble(row, box, () => machinery.adoptBrowser(box, inner));
    });
  }

  async #assemble(row: SessionRow, box: Box, reach: () => Promise<Browser>): Promise<LiveSession> {
    const { machinery, rows, clock, presence } = this.#parts;
    const scope = new Scope();
    scope.own(box);
    try {
      const egress = scope.own(machinery.openEgress({ session: row.id, server: box.egress }));
      // Before anything is asked of the browser: a successor finds it by this even if we die in the next line.
      await rows.setBox(row.id, { ...box.record }, clock.now());
      const browser = scope.own(await Promise.race([reach(), startFailed(box)]));
      return new LiveSession(row, { browser, egress, box }, new Presence(row.id, row.keepAlive, presence), scope);
    } catch (error) {
      await scope.close();
      throw error;
    }
  }
}

async function startFailed(box: Box): Promise<never> {
  const end = await box.gone;
  throw new Error(`the browser ended while starting (${end.why}: ${end.detail}): ${box.stderrTail()}`);
}
