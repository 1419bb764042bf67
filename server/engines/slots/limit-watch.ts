// Looks at a running box every few seconds: how much its folder holds, and how often the kernel killed for want of memory.
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Cgroup } from './cgroup.ts';
import { type Measured, measure } from './measure.ts';

/** A fast writer gets this much further than the bound before it is seen. */
const LOOK_EVERY_MS = 2000;
/**
 * A browser whose main process was killed is seen to be gone within this, also by a server that has much else to do; a look
 * may come in between.
 */
const GONE_SEEN_WITHIN_MS = 5000;
/** A profile has some thousands of files. More than these, or deeper, and looking at them all becomes the attack. */
const ENTRIES_MAX = 200_000;
const DEPTH_MAX = 128;

export interface LimitWatchWish {
  readonly folder: string;
  readonly diskBytes: number;
  readonly cgroup: Cgroup;
  readonly clock: Clock;
  readonly log: Log;
  readonly onDiskLimit: (measured: Measured) => void;
}

export class LimitWatch {
  readonly #wish: LimitWatchWish;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #memoryKillsSeen: number;
  #memoryKillSeenMs = Number.NEGATIVE_INFINITY;

  constructor(wish: LimitWatchWish) {
    this.#wish = wish;
    this.#memoryKillsSeen = wish.cgroup.outOfMemoryKills();
    this.#running = this.#run();
  }

  /** Whether the kernel has killed for want of memory just now. An earlier kill was a renderer's: the box lived on. */
  justRanOutOfMemory(): boolean {
    this.#countMemoryKills();
    return this.#wish.clock.monotonicMs() - this.#memoryKillSeenMs < GONE_SEEN_WITHIN_MS;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#look().catch(error => this.#wish.log.warn('box.measure_failed', { reason: reason(error) }));
      await this.#wish.clock.sleep(LOOK_EVERY_MS, this.#stop.signal).catch(() => {});
    }
  }

  #countMemoryKills(): void {
    const kills = this.#wish.cgroup.outOfMemoryKills();
    if (kills > this.#memoryKillsSeen) this.#memoryKillSeenMs = this.#wish.clock.monotonicMs();
    this.#memoryKillsSeen = kills;
  }

  async #look(): Promise<void> {
    this.#countMemoryKills();
    const bounds = { bytes: this.#wish.diskBytes, entries: ENTRIES_MAX, depth: DEPTH_MAX };
    const measured = await measure(this.#wish.folder, bounds, this.#stop.signal);
    if (measured.over && !this.#stop.signal.aborted) this.#wish.onDiskLimit(measured);
  }
}
