// The bytes that the sessions of an application transferred over the network, by UTC day.
import type { ApplicationId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

export interface EgressDayRow {
  readonly applicationId: ApplicationId;
  /** `YYYY-MM-DD`. */
  readonly day: string;
  readonly bytes: number;
}

export interface EgressDays {
  /** Adds bytes to the day. Returns each application's new total and its configured limits. */
  add(
    day: string,
    bytesByApplication: ReadonlyMap<ApplicationId, number>,
  ): Promise<Array<Omit<EgressDayRow, 'day'> & { readonly configured: JsonObject }>>;
  /** Removes the days before this one. Returns the number of rows. */
  forget(firstDay: string): Promise<number>;
}
