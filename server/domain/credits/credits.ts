// Reads the credit of an application: the balance, the reservations, the ledger entries, and the usage with its cost.
// Only the operator can grant credit.
import { PAGE_LIMIT_DEFAULT } from '../../../contract/common.ts';
import {
  CREDIT_USAGE_DAYS_DEFAULT,
  CREDIT_USAGE_DAYS_MAX,
  CREDIT_USAGE_ROWS_MAX,
  type CreditEntry,
  type CreditEntryPage,
  type CreditEntryQuery,
  type Credits as CreditsView,
  type CreditUsage,
  type CreditUsageQuery,
  RESERVATIONS_SHOWN_MAX,
  type Reservation,
} from '../../../contract/credits.ts';
import type { ApplicationRow } from '../../engines/store/rows/accounts.ts';
import type { CostRow, CreditEntryRow, CreditReads, ReservationRow } from '../../engines/store/rows/credits.ts';
import type { UsageHours } from '../../engines/store/rows/usage-hours.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import type { ApplicationId, CreditEntryId } from '../../kit/ids.ts';
import { type CreditRates, isEnforced } from '../../kit/metered-cost.ts';
import { invalidRequest } from '../faults.ts';
import type { Applications } from '../identity/applications.ts';
import type { AccountCaller } from '../identity/caller.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';
import { startOfUtcDay, utcDay } from '../limits/utc-day.ts';

const DAY_MS = 24 * 3_600_000;

export interface CreditsParts {
  readonly rows: CreditReads;
  readonly hours: Pick<UsageHours, 'ofApplication' | 'byKey'>;
  readonly applications: Pick<Applications, 'require'>;
  readonly cursors: Cursors;
  readonly rates: CreditRates;
  readonly clock: Clock;
}

type UsageRow = CreditUsage['data'][number];

export class Credits {
  readonly #parts: CreditsParts;

  constructor(parts: CreditsParts) {
    this.#parts = parts;
  }

  async read(caller: AccountCaller, appId: string): Promise<CreditsView> {
    return this.readView(await this.#parts.applications.require(caller, appId, 'read'));
  }

  /** Returns the same as `read`, without checking a caller. Used by the command line. */
  async readView({ id, billingAccountId }: ApplicationRow): Promise<CreditsView> {
    const { rows, rates, clock } = this.#parts;
    const [{ available, reserved }, heldReservations, sums] = await Promise.all([
      rows.balance(billingAccountId),
      rows.listHeld(id, RESERVATIONS_SHOWN_MAX),
      rows.sums(id, startOfUtcMonth(clock.now())),
    ]);
    return {
      ...{ unit: 'microcredit', balance: available + reserved, reserved, available },
      thisApplication: { reserved: sums.reserved, capturedThisMonth: sums.captured },
      reservations: heldReservations.map(reservationView),
      ...{ rates, metering: true, enforced: isEnforced(rates) },
    };
  }

  async entries(caller: AccountCaller, appId: string, query: CreditEntryQuery): Promise<CreditEntryPage> {
    const { rows, applications, cursors } = this.#parts;
    const { id } = await applications.require(caller, appId, 'read');
    const { limit = PAGE_LIMIT_DEFAULT, cursor, type, after } = query;
    const name: ListName = { list: 'credit_entries', owner: id };
    const entryRows = await rows.entries(id, {
      limit: limit + 1,
      ...(cursor === undefined ? {} : { before: cursors.read<CreditEntryId>(name, cursor) }),
      ...(type === undefined ? {} : { type }),
      ...(after === undefined ? {} : { after: new Date(after) }),
    });
    return listPageOf(entryRows, limit, entryView, last => cursors.after(name, last));
  }

  async usage(caller: AccountCaller, appId: string, query: CreditUsageQuery): Promise<CreditUsage> {
    const { id } = await this.#parts.applications.require(caller, appId, 'read');
    const { by = 'day' } = query;
    const period = periodOf(query, this.#parts.clock.now());
    const costs = await this.#parts.rows.costs(id, period, by, CREDIT_USAGE_ROWS_MAX);
    const data =
      by === 'day'
        ? await this.#usageByDay(id, period, costs)
        : by === 'key'
          ? await this.#usageByKey(id, period, costs)
          : costs;
    return { from: period.from.toISOString(), to: period.to.toISOString(), by, data: [...data] };
  }

  /** Returns one row for every day of the period. */
  async #usageByDay(id: ApplicationId, period: Period, costs: readonly CostRow[]): Promise<UsageRow[]> {
    const now = this.#parts.clock.now();
    const hours = await this.#parts.hours.ofApplication(id, { ...period, now });
    const days = Array.from({ length: (period.to.getTime() - period.from.getTime()) / DAY_MS }, (_, at) =>
      utcDay(addMs(period.from, at * DAY_MS)),
    );
    return days.map(dayText => {
      const hoursOfDay = hours.filter(({ hour }) => utcDay(hour) === dayText);
      const { calls = 0, cost = 0 } = costs.find(row => row.of === dayText) ?? {};
      return { of: dayText, ...metersOf(hoursOfDay), calls, cost };
    });
  }

  async #usageByKey(id: ApplicationId, period: Period, costs: readonly CostRow[]): Promise<UsageRow[]> {
    const now = this.#parts.clock.now();
    const keys = await this.#parts.hours.byKey(id, { ...period, now }, CREDIT_USAGE_ROWS_MAX);
    const groupKeys = new Set([...costs.map(({ of }) => of), ...keys.map(({ keyId }) => keyId)]);
    const rows = [...groupKeys].map(groupedKey => {
      const usageOfKey = keys.filter(({ keyId }) => keyId === groupedKey);
      const { calls = 0, cost = 0, name = usageOfKey[0]?.name } = costs.find(row => row.of === groupedKey) ?? {};
      return { of: groupedKey, ...(name === undefined ? {} : { name }), ...metersOf(usageOfKey), calls, cost };
    });
    return rows.sort((a, b) => b.cost - a.cost || b.browserSeconds - a.browserSeconds).slice(0, CREDIT_USAGE_ROWS_MAX);
  }
}

interface Period {
  readonly from: Date;
  readonly to: Date;
}

/** Extends the requested period to whole UTC days. */
function periodOf({ from, to }: CreditUsageQuery, now: Date): Period {
  const endTime = to === undefined ? now : new Date(to);
  const beginTime = from === undefined ? addMs(endTime, -(CREDIT_USAGE_DAYS_DEFAULT - 1) * DAY_MS) : new Date(from);
  if (beginTime > endTime) throw invalidRequest([{ path: 'from', message: 'is after `to`' }]);
  const days = { from: startOfUtcDay(beginTime), to: addMs(startOfUtcDay(endTime), DAY_MS) };
  if (days.to.getTime() - days.from.getTime() > CREDIT_USAGE_DAYS_MAX * DAY_MS)
    throw invalidRequest([
      {
        path: 'from',
        message: `is too early: the period may contain at most ${CREDIT_USAGE_DAYS_MAX} UTC days, including the days of \`from\` and \`to\``,
      },
    ]);
  return days;
}

const metersOf = (
  rows: ReadonlyArray<{ readonly browserMs: number; readonly bytesReceived: number; readonly bytesSent: number }>,
) => ({
  browserSeconds: rows.reduce((sum, { browserMs }) => sum + browserMs, 0) / 1000,
  egressBytes: rows.reduce((sum, { bytesReceived, bytesSent }) => sum + bytesReceived + bytesSent, 0),
});

const startOfUtcMonth = (time: Date): Date => new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth()));

const reservationView = ({
  id,
  purposeKind,
  purposeId,
  amount,
  captured,
  status,
  createdAt,
  expiresAt,
}: ReservationRow): Reservation => ({
  ...{ id, purpose: { kind: purposeKind, id: purposeId }, amount, captured, status },
  createdAt: createdAt.toISOString(),
  ...(expiresAt ? { expiresAt: expiresAt.toISOString() } : {}),
});

const entryView = ({ id, type, at, reservationId, checkoutId, reason, ...legs }: CreditEntryRow): CreditEntry => {
  const { funding, available, reserved, revenue, promo } = legs;
  return {
    ...{ id, type, legs: { funding, available, reserved, revenue, promo }, at: at.toISOString() },
    ...(reservationId ? { reservationId } : {}),
    ...(checkoutId ? { checkoutId } : {}),
    ...(reason === undefined ? {} : { reason }),
  };
};
