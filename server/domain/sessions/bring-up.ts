// From a row to a running browser, and back from a former process's browser to a live session. Everything that was
// started is undone in reverse when a step fails.
import type { Box, BoxRecord } from '../../engines/slots/slots.ts';
import type { SessionRow, SessionRows } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import type { Tracer } from '../../kit/trace.ts';
import { withDeadline } from '../../kit/wait.ts';
import { diskFull } from '../faults.ts';
import { type Booted, boot, equipAdopted } from './boot.ts';
import { LiveSession } from './live.ts';
import type { Machinery } from './machinery.ts';
import { Presence, type PresenceParts } from './presence.ts';
import { claimSettings, launchSettings } from './settings.ts';
import type { WarmPool } from './warm-pool.ts';

/** A create answers within this, whatever happens. */
export const BROWSER_START_MS = 30_000;

export interface BringUpParts {
  readonly machinery: Machinery;
  readonly pool: WarmPool;
  readonly rows: SessionRows;
  readonly clock: Clock;
  readonly log: Log;
  readonly trace: Tracer;
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
    return withDeadline(
      BROWSER_START_MS,
      'the browser to start',
      async inner => {
        const booted = await this.#boot(row, inner);
        return this.#finish(booted, () => this.#settle(row, booted));
      },
      signal,
    );
  }

  /** Undefined when the browser is gone. */
  async adopt(row: SessionRow, boxId: SessionId, record: BoxRecord): Promise<LiveSession | undefined> {
    const { machinery } = this.#parts;
    return withDeadline(BROWSER_START_MS, 'a running browser to be adopted', async inner => {
      const box = await machinery.slots.adopt(boxId, record, inner);
      if (!box) return undefined;
      const booted = await equipAdopted(machinery, box, inner);
      return this.#finish(booted, async () => this.#live(row, booted));
    });
  }

  async #boot(row: SessionRow, signal: AbortSignal): Promise<Booted> {
    const { machinery, pool, trace } = this.#parts;
    const launch = launchSettings(row.settings);
    const warm = pool.claim(launch);
    if (warm) return trace.during('session.claim', () => this.#claimed(row, warm));
    const wish = { id: row.id, launch, background: false, stands: (box: Box) => this.#note(row, box) };
    return trace.during('session.launch', () => boot(machinery, wish, signal));
  }

  #claimed(row: SessionRow, warm: Booted): Promise<Booted> {
    warm.box.hasten();
    return this.#finish(warm, async () => {
      await this.#note(row, warm.box);
      return warm;
    });
  }

  /** Before anything is asked of the browser: a successor finds it by this even if we die in the next line. */
  #note(row: SessionRow, box: Box): Promise<void> {
    return this.#parts.rows.setBox(row.id, { ...box.record, id: box.session }, this.#parts.clock.now());
  }

  async #settle(row: SessionRow, booted: Booted): Promise<LiveSession> {
    await this.#parts.trace.during('browser.take', () => booted.browser.take(claimSettings(row.settings)));
    return this.#live(row, booted);
  }

  #live(row: SessionRow, booted: Booted): LiveSession {
    booted.egress.assign(row.id);
    return new LiveSession(row, booted, new Presence(row.id, row.keepAlive, this.#parts.presence));
  }

  async #finish<T>(booted: Booted, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await booted.scope.close();
      throw error;
    }
  }
}
