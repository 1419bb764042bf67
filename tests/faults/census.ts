// Every second, counts the items whose numbers must agree while sessions come and go: running rows, browsers in the
// process table, and taken slots as reported by the server. Also samples the server's memory. Warm browsers are counted
// separately.
import assert from 'node:assert/strict';
import type { TestServer } from '../harness/server.ts';
import { type Count, count } from './count.ts';

const SAMPLE_INTERVAL_MS = 1_000;
/** The counts may differ for this long on a loaded machine. */
const LAG_MS_MAX = 15_000;
/**
 * A difference counts only if it is seen in at least this many samples. Its duration alone proves nothing, because the
 * test and the server may have been suspended.
 */
const DISAGREEMENT_SAMPLES_MIN = 10;
const TREND_PARTS = 12;
/** The fraction of the samples that belongs to the warm-up. */
const WARM_UP_FRACTION = 0.25;

type Sample = Omit<Count, 'disagreements'>;

export interface CensusOptions {
  readonly server: TestServer;
  /** Maximum number of warm browsers, including those being started or ended. */
  readonly waitingMax: number;
  /** Maximum growth of the server's memory after the warm-up. */
  readonly growthMibMax: number;
}

export class Census {
  readonly #options: CensusOptions;
  readonly #samples: Sample[] = [];
  /**
   * The current differences, each with the time at which it was first seen and the number of samples in which it was
   * seen.
   */
  readonly #currentDisagreements = new Map<string, { readonly atMs: number; readonly sampleCount: number }>();
  readonly #lastingDisagreements = new Set<string>();
  #worstLagMs = 0;
  #counting: Promise<void> | undefined;
  #isOver = false;

  constructor(options: CensusOptions) {
    this.#options = options;
  }

  begin(): void {
    this.#counting = this.#sampleRepeatedly();
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#counting;
  }

  figures(): Readonly<Record<string, string>> {
    const maxOf = (of: (sample: Sample) => number): number => Math.max(...this.#samples.map(of));
    return {
      samples: String(this.#samples.length),
      'most at once': `${maxOf(one => one.running)} running, ${maxOf(one => one.warmCount)} waiting, ${maxOf(one => one.takenSlots)} places`,
      'longest disagreement': `${Math.round(this.#worstLagMs)} ms`,
      'resident memory, MiB': this.#trend(one => one.residentMib, median),
      'least heap, MiB': this.#trend(one => one.heapMib, minOf),
    };
  }

  /** Fails if counts differed for too long, or if memory grew too much. */
  assertAll(): void {
    assert.deepEqual([...this.#lastingDisagreements], []);
    const { residentMib, heapMib } = this.#growth();
    assert.ok(heapMib <= this.#options.growthMibMax, `the heap of the server grew by ${heapMib} MiB`);
    assert.ok(residentMib <= this.#options.growthMibMax, `the memory of the server grew by ${residentMib} MiB`);
  }

  async #sampleRepeatedly(): Promise<void> {
    while (!this.#isOver) {
      const beganMs = performance.now();
      await this.#sample(beganMs);
      await new Promise(resolve =>
        setTimeout(resolve, Math.max(0, SAMPLE_INTERVAL_MS - (performance.now() - beganMs))),
      );
    }
  }

  async #sample(atMs: number): Promise<void> {
    const { server, waitingMax } = this.#options;
    const { disagreements, ...sample } = await count(server, waitingMax);
    this.#trackDisagreements(atMs, disagreements);
    this.#samples.push(sample);
  }

  #trackDisagreements(atMs: number, disagreements: readonly string[]): void {
    for (const disagreement of this.#currentDisagreements.keys())
      if (!disagreements.includes(disagreement)) this.#currentDisagreements.delete(disagreement);
    for (const one of disagreements) {
      const entry = this.#currentDisagreements.get(one) ?? { atMs, sampleCount: 0 };
      const sampleCount = entry.sampleCount + 1;
      this.#currentDisagreements.set(one, { ...entry, sampleCount });
      const lagMs = atMs - entry.atMs;
      this.#worstLagMs = Math.max(this.#worstLagMs, lagMs);
      if (lagMs > LAG_MS_MAX && sampleCount >= DISAGREEMENT_SAMPLES_MIN) this.#lastingDisagreements.add(one);
    }
  }

  /**
   * The growth between the first and the last third of the samples after the warm-up. Most of the heap in a sample is
   * garbage, so the minimum shows what remains in use.
   */
  #growth(): { residentMib: number; heapMib: number } {
    const warmSamples = this.#samples.slice(Math.floor(this.#samples.length * WARM_UP_FRACTION));
    const thirdLength = Math.ceil(warmSamples.length / 3);
    const [before, after] = [warmSamples.slice(0, thirdLength), warmSamples.slice(-thirdLength)];
    const growthOf = (of: (sample: Sample) => number, typical: (values: readonly number[]) => number): number =>
      typical(after.map(of)) - typical(before.map(of));
    return { residentMib: growthOf(one => one.residentMib, median), heapMib: growthOf(one => one.heapMib, minOf) };
  }

  #trend(of: (sample: Sample) => number, typical: (values: readonly number[]) => number): string {
    const partLength = Math.ceil(this.#samples.length / TREND_PARTS);
    const parts = Array.from({ length: TREND_PARTS }, (_, index) =>
      this.#samples.slice(index * partLength, (index + 1) * partLength),
    );
    return parts.flatMap(samples => (samples.length > 0 ? [typical(samples.map(of)).toFixed(0)] : [])).join(' ');
  }
}

const minOf = (values: readonly number[]): number => Math.min(...values);

function median(values: readonly number[]): number {
  const middle = values.toSorted((one, other) => one - other)[values.length >> 1];
  if (middle === undefined) throw new Error('no counts were sampled, so there is no median');
  return middle;
}
