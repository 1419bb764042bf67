// A period of time in a query.
import { invalidRequest } from './faults.ts';

/** A period as in the query of a request, with times in ISO 8601. */
export interface PeriodQuery {
  readonly from?: string;
  readonly to?: string;
}

export interface Period {
  readonly from?: Date;
  /** The end, which is not part of the period. */
  readonly to?: Date;
}

/** @throws Fault `invalid_request` if `from` is not before `to`. */
export function periodOf({ from, to }: PeriodQuery): Period {
  if (from !== undefined && to !== undefined && new Date(from) >= new Date(to))
    throw invalidRequest([{ path: 'from', message: 'is not before `to`' }]);
  return {
    ...(from === undefined ? {} : { from: new Date(from) }),
    ...(to === undefined ? {} : { to: new Date(to) }),
  };
}

/** Whether the time `ms`, in milliseconds since 1970, is in the period. */
export const isWithin = ({ from, to }: Period, ms: number): boolean =>
  (from === undefined || ms >= from.getTime()) && (to === undefined || ms < to.getTime());
