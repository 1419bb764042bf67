// The state of a device authorization for its program, which may wait for a change.
import type { DeviceState, DeviceStatusQuery } from '../../../contract/device.ts';
import type { DeviceRow } from '../../engines/store/rows/device.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { Notices } from '../../kit/notices.ts';
import type { Closeable } from '../../kit/scope.ts';
import { fault, notFound } from '../faults.ts';
import type { RequestSource } from '../identity/caller.ts';
import { Tally } from '../limits/tally.ts';
import { deviceCodeIn, invalidDeviceCode } from './device-code.ts';
import { lastInTime, stateAt, statusAt } from './state.ts';

const READS_PER_MINUTE = 300;
const MINUTE_MS = 60_000;
/** The most requests that wait at once. Further ones are answered at once. */
const WAITING_MAX = 1_000;
/** How often the row is read, because a notification may be lost and an authorization expires without one. */
const LOOK_MS = 5_000;

export interface FollowingParts {
  readonly store: Pick<Store, 'listen'> & { readonly device: Pick<Store['device'], 'byDeviceCode' | 'readState'> };
  readonly clock: Clock;
}

interface Waiting {
  readonly id: string;
  readonly wake: () => void;
}

export class Following implements Closeable {
  readonly #parts: FollowingParts;
  readonly #reads: Tally;
  readonly #waiting = new Set<Waiting>();
  readonly #closing = new AbortController();
  #listening: Closeable | undefined;

  private constructor(parts: FollowingParts) {
    this.#parts = parts;
    const limit = { what: 'Reads of states', max: READS_PER_MINUTE, withinMs: MINUTE_MS } as const;
    this.#reads = new Tally({ ...limit, scope: 'address' }, parts.clock);
  }

  static async open(parts: FollowingParts): Promise<Following> {
    const following = new Following(parts);
    following.#listening = await parts.store.listen(
      'device_changed',
      id => following.#wake(id),
      () => following.#wake(undefined),
    );
    return following;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake(undefined);
    await this.#listening?.close();
  }

  async read(
    id: string,
    authorization: string | undefined,
    { wait = 0, since }: DeviceStatusQuery,
    source: RequestSource,
    signal: AbortSignal,
  ): Promise<DeviceState> {
    this.#reads.take(source.ip);
    const { clock } = this.#parts;
    const row = await this.#find(id, authorization);
    const known = since ?? statusAt(row, clock.now());
    if (wait === 0 || known !== statusAt(row, clock.now()) || this.#waiting.size >= WAITING_MAX)
      return this.#atOnce(row);
    return this.#changed(row, known, wait * 1000, signal);
  }

  async #find(id: string, authorization: string | undefined): Promise<DeviceRow> {
    const row = await this.#parts.store.device.byDeviceCode(deviceCodeIn(authorization));
    if (!row) throw invalidDeviceCode();
    if (row.id !== id) throw notFound('Device authorization', id);
    return row;
  }

  async #atOnce(row: DeviceRow): Promise<DeviceState> {
    const now = this.#parts.clock.now();
    if (await this.#parts.store.device.readState(row.id, now, lastInTime(row, now))) return stateAt(row, now);
    throw fault('rate_limited', 'The state was read again too soon.', {
      advice: `Wait ${row.intervalSeconds} s, or ask with wait=55.`,
      details: { limit: 1, used: 1, scope: 'device_authorization', retryAfterSeconds: row.intervalSeconds },
    });
  }

  async #changed(row: DeviceRow, known: string, waitMs: number, signal: AbortSignal): Promise<DeviceState> {
    const { clock, store } = this.#parts;
    const deadlineMs = clock.monotonicMs() + waitMs;
    let latest = row;
    const woken = new Notices(clock);
    const waiting: Waiting = { id: row.id, wake: () => woken.wake() };
    this.#waiting.add(waiting);
    signal.addEventListener('abort', waiting.wake, { once: true });
    try {
      for (;;) {
        latest = (await store.device.byDeviceCode(row.deviceCodeHash)) ?? latest;
        const leftMs = deadlineMs - clock.monotonicMs();
        const isOver = leftMs <= 0 || signal.aborted || this.#closing.signal.aborted;
        if (isOver || statusAt(latest, clock.now()) !== known) return stateAt(latest, clock.now());
        const untilExpiryMs = Math.max(1, latest.expiresAt.getTime() - clock.now().getTime());
        await woken.next(Math.min(leftMs, LOOK_MS, untilExpiryMs));
      }
    } finally {
      this.#waiting.delete(waiting);
      signal.removeEventListener('abort', waiting.wake);
    }
  }

  #wake(id: string | undefined): void {
    for (const waiting of this.#waiting) if (id === undefined || waiting.id === id) waiting.wake();
  }
}
