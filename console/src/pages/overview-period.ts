// The periods of the overview: the query of each, and the names of its steps.
import type { UsageQuery } from '../../../contract/usage.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * `backMs`: the time from the beginning of the first step to now. It is one step shorter than the period, because the
 * current step is also shown.
 */
export const PERIODS = {
  day: { name: 'Last 24 hours', step: '1h', backMs: 23 * HOUR_MS },
  week: { name: 'Last 7 days', step: '1d', backMs: 6 * DAY_MS },
  month: { name: 'Last 30 days', step: '1d', backMs: 29 * DAY_MS },
} as const;
export type Period = keyof typeof PERIODS;

export const PERIOD_DEFAULT: Period = 'week';

export const readPeriod = (search: Record<string, unknown>): { period?: Period } => {
  const period = (Object.keys(PERIODS) as Period[]).find(one => one === search.period);
  return period && period !== PERIOD_DEFAULT ? { period } : {};
};

export const usageQueryOf = (period: Period, nowMs: number): Pick<UsageQuery, 'from' | 'step'> => ({
  from: new Date(nowMs - PERIODS[period].backMs).toISOString(),
  step: PERIODS[period].step,
});

const HOUR_FORMAT = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const HOUR_NAME_FORMAT = new Intl.DateTimeFormat(undefined, {
  ...{ weekday: 'short', day: 'numeric', month: 'short' },
  ...{ hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZoneName: 'short' },
});
/** Formats a day. Days are UTC days, because the service has one calendar for all users. */
const DAY_FORMAT = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });
const DAY_NAME_FORMAT = new Intl.DateTimeFormat(undefined, {
  ...{ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' },
});

export function stepNames(period: Period, from: string): { readonly name: string; readonly tick: string } {
  const time = new Date(from);
  return period === 'day'
    ? { name: HOUR_NAME_FORMAT.format(time), tick: HOUR_FORMAT.format(time) }
    : { name: `${DAY_NAME_FORMAT.format(time)}, UTC`, tick: DAY_FORMAT.format(time) };
}
