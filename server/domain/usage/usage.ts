// The usage of an application in a period. The store contains the usage of each hour. This file combines hours into
// steps of one or more hours.
import {
  type ApplicationUsage,
  type KeyUsage,
  USAGE_DAYS_DEFAULT,
  USAGE_KEYS_MAX,
  USAGE_RETENTION_DAYS,
  USAGE_STEP_HOURS,
  USAGE_STEPS_MAX,
  type UsageQuery,
  type UsageStep,
} from '../../../contract/usage.ts';
import type { UsageHour, UsageHours, UsagePeriod, UsageSums } from '../../engines/store/rows/usage-hours.ts';
import { addMs } from '../../kit/clock.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { invalidRequest } from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller } from '../identity/caller.ts';
import { quantile } from './quantile.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/**
 * The delay between the end of an hour and the summing of its usage. During this delay, a late transaction may still
 * add usage to the hour.
 */
const SUM_DELAY_MS = 300_000;
const HOURS_PER_SUM = 24;
/** The maximum number of sums in one run. A server that was stopped for a long time catches up in several runs. */
const SUMS_PER_RUN_MAX = 60;
export const USAGE_SUM_INTERVAL_MS = 300_000;

export interface UsageParts extends Pick<Runtime, 'clock'> {
  readonly rows: UsageHours;
  readonly applications: Pick<Applications, 'require'>;
}

export class Usage {
  readonly #parts: UsageParts;

  constructor(parts: UsageParts) {
    this.#parts = parts;
  }

  async read(caller: AccountCaller, appId: string, query: UsageQuery): Promise<ApplicationUsage> {
    const { rows, applications, clock } = this.#parts;
    const { id } = await applications.require(caller, appId, 'read');
    const now = clock.now();
    const { step = '1d' } = query;
    const stepMs = USAGE_STEP_HOURS[step] * HOUR_MS;
    const period = { ...periodOf(query, now, stepMs), now };
    const [hours, keys] = await Promise.all([rows.ofApplication(id, period), rows.byKey(id, period, USAGE_KEYS_MAX)]);
    return {
      from: period.from.toISOString(),
      to: period.to.toISOString(),
      step,
      total: this.#totalOf(hours),
      steps: this.#steps(hours, period, stepMs),
      keys: keys.map(
        ({ keyId, name, ...sums }): KeyUsage => ({ keyId, ...(name ? { name } : {}), ...publicUsage(sums) }),
      ),
    };
  }

  /** Sums and stores the usage of the hours that are over. Returns the number of hours. */
  async sum(): Promise<{ hours: number }> {
    const { rows, clock } = this.#parts;
    const endHour = floor(addMs(clock.now(), -SUM_DELAY_MS), HOUR_MS);
    let hours = 0;
    for (let run = 0; run < SUMS_PER_RUN_MAX; run += 1) {
      const summedCount = await rows.sum(endHour, HOURS_PER_SUM);
      hours += summedCount;
      if (summedCount < HOURS_PER_SUM) break;
    }
    return { hours };
  }

  async forget(): Promise<{ removed: number }> {
    const { rows, clock } = this.#parts;
    return { removed: await rows.forget(addMs(clock.now(), -USAGE_RETENTION_DAYS * DAY_MS)) };
  }

  #steps(hours: readonly UsageHour[], { from, to }: UsagePeriod, stepMs: number): UsageStep[] {
    const hoursByStep = Map.groupBy(hours, ({ hour }) => floor(hour, stepMs).getTime());
    const stepCount = (to.getTime() - from.getTime()) / stepMs;
    return Array.from({ length: stepCount }, (_, at) => {
      const stepStart = addMs(from, at * stepMs);
      return { from: stepStart.toISOString(), ...this.#totalOf(hoursByStep.get(stepStart.getTime()) ?? []) };
    });
  }

  #totalOf(hours: readonly UsageHour[]): ApplicationUsage['total'] {
    const bounds = this.#parts.rows.startBoundsMs;
    const starts = Array.from({ length: bounds.length + 1 }, (_, at) => sumOf(hours, hour => hour.starts[at] ?? 0));
    const [median, p95] = [quantile(bounds, starts, 0.5), quantile(bounds, starts, 0.95)];
    const endReasons: Record<string, number> = {};
    for (const hour of hours)
      for (const [why, count] of Object.entries(hour.endReasons)) endReasons[why] = (endReasons[why] ?? 0) + count;
    return {
      ...publicUsage({
        created: sumOf(hours, hour => hour.created),
        ended: sumOf(hours, hour => hour.ended),
        failed: sumOf(hours, hour => hour.failed),
        browserMs: sumOf(hours, hour => hour.browserMs),
        cpuMs: sumOf(hours, hour => hour.cpuMs),
        bytesReceived: sumOf(hours, hour => hour.bytesReceived),
        bytesSent: sumOf(hours, hour => hour.bytesSent),
      }),
      ...(median === undefined ? {} : { startMsP50: Math.round(median) }),
      ...(p95 === undefined ? {} : { startMsP95: Math.round(p95) }),
      peakRunning: Math.max(0, ...hours.map(({ peak }) => peak)),
      endReasons,
    };
  }
}

/** Extends the period to full steps. */
function periodOf({ from, to }: UsageQuery, now: Date, stepMs: number): { from: Date; to: Date } {
  const end = to === undefined ? now : new Date(to);
  const begin = from === undefined ? addMs(end, -USAGE_DAYS_DEFAULT * DAY_MS) : new Date(from);
  if (begin >= end) throw invalidRequest([{ path: 'from', message: 'is not before `to`' }]);
  const wholePeriod = { from: floor(begin, stepMs), to: floor(addMs(end, stepMs - 1), stepMs) };
  const stepCount = (wholePeriod.to.getTime() - wholePeriod.from.getTime()) / stepMs;
  if (stepCount > USAGE_STEPS_MAX)
    throw invalidRequest([
      { path: 'from', message: `results in ${stepCount} steps; expected at most ${USAGE_STEPS_MAX}` },
    ]);
  return wholePeriod;
}

const floor = (time: Date, stepMs: number): Date => new Date(Math.floor(time.getTime() / stepMs) * stepMs);

const sumOf = (hours: readonly UsageHour[], readValue: (hour: UsageHour) => number): number =>
  hours.reduce((sum, hour) => sum + readValue(hour), 0);

const publicUsage = ({ browserMs, cpuMs, ...counts }: UsageSums) => ({
  ...counts,
  browserSeconds: browserMs / 1000,
  cpuSeconds: cpuMs / 1000,
});
