// The machine and the server process, as shown to the operator. Readings of the last few hours are kept in memory for
// display only. A monitoring system can collect readings from `/metrics` and keep them for longer.
import {
  HOST_SAMPLES_MAX,
  type HostExamination,
  type HostSample,
  type Host as HostView,
} from '../../../contract/host.ts';
import type { Accounts } from '../../engines/store/rows/accounts.ts';
import type { Clock } from '../../kit/clock.ts';
import { SingleFlight } from '../../kit/single-flight.ts';
import type { AccountCaller } from '../identity/caller.ts';
import { assertOperator } from './operator.ts';

export const HOST_SAMPLE_INTERVAL_MS = 60_000;

export type HostFacts = Omit<HostView, 'startedAt' | 'now' | 'samples' | 'checks'>;

export interface HostParts {
  readonly clock: Clock;
  readonly accounts: Pick<Accounts, 'first'>;
  readonly facts: HostFacts;
  readonly read: () => Promise<Omit<HostSample, 'at'>>;
  readonly readChecks: () => Promise<Pick<HostView, 'checks'>>;
  readonly examine: () => Promise<HostExamination['findings']>;
}

export class Host {
  readonly #parts: HostParts;
  readonly #startedAt: Date;
  readonly #samples: HostSample[] = [];
  readonly #examinations = new SingleFlight<'host', HostExamination['findings']>();

  constructor(parts: HostParts) {
    this.#parts = parts;
    this.#startedAt = parts.clock.now();
  }

  async read(caller: AccountCaller): Promise<HostView> {
    await assertOperator(this.#parts.accounts, caller);
    const { facts, readChecks: loadChecks } = this.#parts;
    const [now, { checks }] = await Promise.all([this.#readSample(), loadChecks()]);
    return {
      ...facts,
      startedAt: this.#startedAt.toISOString(),
      now,
      samples: [...this.#samples],
      checks: [...checks],
    };
  }

  async examine(caller: AccountCaller): Promise<HostExamination> {
    await assertOperator(this.#parts.accounts, caller);
    return { findings: await this.#examinations.run('host', this.#parts.examine) };
  }

  /** Adds a reading, and removes the oldest readings beyond the maximum. */
  async sample(): Promise<Record<string, never>> {
    this.#samples.push(await this.#readSample());
    this.#samples.splice(0, this.#samples.length - HOST_SAMPLES_MAX);
    return {};
  }

  async #readSample(): Promise<HostSample> {
    return { at: this.#parts.clock.now().toISOString(), ...(await this.#parts.read()) };
  }
}
