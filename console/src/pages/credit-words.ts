// Labels for the credit page (entries, orders, prices, days), and the view and the queries that its address selects.
import type { CreditEntry, CreditUsageQuery, UsageGrouping } from '../../../contract/credits.ts';
import type { Checkout } from '../../../contract/topups.ts';
import { earliestTimeOf, readFilters, type Since } from './session-filters.ts';

const DAY_MS = 86_400_000;

export const GROUPINGS = { day: 'By day', operation: 'By operation', key: 'By agent key' } as const satisfies Readonly<
  Record<UsageGrouping, string>
>;

export const CREDIT_USAGE_PERIODS = {
  week: { name: 'Last 7 days', days: 7 },
  month: { name: 'Last 30 days', days: 30 },
  quarter: { name: 'Last 90 days', days: 90 },
} as const;
export type CreditUsagePeriod = keyof typeof CREDIT_USAGE_PERIODS;

export const ENTRY_WORDS: Readonly<Record<CreditEntry['type'], string>> = {
  fund: 'Bought',
  grant: 'Granted by the operator',
  hold: 'Held',
  extend: 'Held more',
  capture: 'Used',
  release: 'Given back',
  expire: 'Given back, outcome unknown',
};

export const CHECKOUT_WORDS: Readonly<Record<Checkout['status'], string>> = {
  open: 'Waiting for payment',
  credited: 'Credited',
  cancelled: 'Cancelled',
  expired: 'Expired',
};

/** The view that the address selects. If a member is absent, its default applies: by day, last 7 days, no filter. */
export interface CreditView {
  readonly by?: UsageGrouping;
  readonly period?: CreditUsagePeriod;
  readonly type?: CreditEntry['type'];
  readonly since?: Since;
}

export function readCreditView({ by, period, type, since }: Record<string, unknown>): CreditView {
  const choices = {
    by: keyIn(GROUPINGS, by),
    period: keyIn(CREDIT_USAGE_PERIODS, period),
    type: keyIn(ENTRY_WORDS, type),
    since: readFilters({ since }).since,
  };
  return {
    ...(choices.by && choices.by !== 'day' ? { by: choices.by } : {}),
    ...(choices.period && choices.period !== 'week' ? { period: choices.period } : {}),
    ...(choices.type ? { type: choices.type } : {}),
    ...(choices.since ? { since: choices.since } : {}),
  };
}

const keyIn = <Key extends string>(labels: Readonly<Record<Key, unknown>>, value: unknown): Key | undefined =>
  (Object.keys(labels) as Key[]).find(key => key === value); // Object.keys() returns strings.

export const usageQueryOf = ({ by = 'day', period = 'week' }: CreditView, nowMs: number): CreditUsageQuery => ({
  by,
  from: new Date(nowMs - (CREDIT_USAGE_PERIODS[period].days - 1) * DAY_MS).toISOString(),
});

export const entryQueryOf = ({ type, since }: CreditView, nowMs: number) => ({
  ...(type ? { type } : {}),
  ...(since ? { after: earliestTimeOf(since, nowMs) } : {}),
});

/** Formats an amount of money, for example as `€45.00`. `amount` is in the smallest unit of the currency. */
export function moneyWords({ amount, currency }: { readonly amount: number; readonly currency: string }): string {
  const format = new Intl.NumberFormat(undefined, { style: 'currency', currency });
  return format.format(amount / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2));
}

const DAY_TICK_FORMAT = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });
const DAY_NAME_FORMAT = new Intl.DateTimeFormat(undefined, {
  ...{ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' },
});

/** The full and the short name of a day such as `2026-11-23`. */
export const dayNames = (day: string): { readonly name: string; readonly tick: string } => {
  const time = new Date(`${day}T00:00:00Z`);
  return { name: `${DAY_NAME_FORMAT.format(time)}, UTC`, tick: DAY_TICK_FORMAT.format(time) };
};
