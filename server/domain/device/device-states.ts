// Returns the state of a device authorization to the program that started it. The program may wait for a change.
import type { DeviceState, DeviceStatusQuery } from '../../../contract/device.ts';
import type { DeviceAuthorizationRow } from '../../engines/store/rows/device.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Closeable } from '../../kit/scope.ts';
import { ChangeFollower } from '../change-follower.ts';
import { fault, notFound } from '../faults.ts';
import type { RequestSource } from '../identity/caller.ts';
import type { SharedTallies, SharedTally } from '../limits/shared-tally.ts';
import { deviceCodeHashIn, invalidDeviceCode } from './device-code.ts';
import { latestPreviousPoll, stateAt, statusAt } from './state.ts';

const READS_PER_MINUTE_MAX = 300;
const MINUTE_MS = 60_000;

export interface DeviceStatesParts {
  readonly store: Pick<Store, 'listen'> & {
    readonly device: Pick<Store['device'], 'byDeviceCode' | 'recordStateRead'>;
  };
  readonly clock: Clock;
  readonly tallies: Pick<SharedTallies, 'of'>;
}

export class DeviceStates implements Closeable {
  readonly #parts: DeviceStatesParts;
  readonly #changeFollower: ChangeFollower;
  readonly #readTally: SharedTally;

  private constructor(parts: DeviceStatesParts, changeFollower: ChangeFollower) {
    this.#parts = parts;
    this.#changeFollower = changeFollower;
    const limit = {
      name: 'device.reads',
      what: 'reads of device authorizations',
      max: READS_PER_MINUTE_MAX,
      withinMs: MINUTE_MS,
    } as const;
    this.#readTally = parts.tallies.of({ ...limit, scope: 'address' });
  }

  static async open(parts: DeviceStatesParts): Promise<DeviceStates> {
    return new DeviceStates(parts, await ChangeFollower.open('device_changed', parts));
  }

  close(): Promise<void> {
    return this.#changeFollower.close();
  }

  async read(
    id: string,
    authorization: string | undefined,
    { wait = 0, since }: DeviceStatusQuery,
    source: RequestSource,
    signal: AbortSignal,
  ): Promise<DeviceState> {
    await this.#readTally.take(source.ip);
    const { clock, store } = this.#parts;
    const row = await this.#requireRow(id, authorization);
    const knownStatus = since ?? statusAt(row, clock.now());
    if (wait === 0 || knownStatus !== statusAt(row, clock.now()) || this.#changeFollower.isFull)
      return this.#readAtOnce(row);
    const latestRow = await this.#changeFollower.awaitChange(
      row,
      {
        concerns: changedId => changedId === row.id,
        read: async () => (await store.device.byDeviceCode(row.deviceCodeHash)) ?? row,
        isChanged: currentRow => statusAt(currentRow, clock.now()) !== knownStatus,
        changesAt: ({ expiresAt }) => expiresAt,
      },
      wait,
      signal,
    );
    return stateAt(latestRow, clock.now());
  }

  async #requireRow(id: string, authorization: string | undefined): Promise<DeviceAuthorizationRow> {
    const row = await this.#parts.store.device.byDeviceCode(deviceCodeHashIn(authorization));
    if (!row) throw invalidDeviceCode();
    if (row.id !== id) throw notFound('Device authorization', id);
    return row;
  }

  async #readAtOnce(row: DeviceAuthorizationRow): Promise<DeviceState> {
    const now = this.#parts.clock.now();
    if (await this.#parts.store.device.recordStateRead(row.id, now, latestPreviousPoll(row, now)))
      return stateAt(row, now);
    throw fault('rate_limited', 'The device authorization was read again too soon.', {
      advice: `Wait ${row.intervalSeconds} s, or send the query parameter wait=55 to wait for a change.`,
      details: { limit: 1, used: 1, scope: 'device_authorization', retryAfterSeconds: row.intervalSeconds },
    });
  }
}
