// Creates that wait for admission, over all hosts. A row is kept by the host whose caller waits; one that is not kept is ignored
// after seconds, so that a lost host holds nobody up.
import type { ApplicationId, HostId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

/** The order of the line: by turn, then by place. The applications take turns. */
export interface Place {
  readonly turn: number;
  readonly place: number;
}

export interface WaitingCreate extends Place {
  readonly applicationId: ApplicationId;
  /** The host whose caller waits. */
  readonly hostId: HostId;
  /** Only a host of this region will do. */
  readonly region: string | null;
  /** What it waits for: `host` is a slot, everything else a limit of its application. */
  readonly why: string;
  /** Its latest refusal. */
  readonly refused: JsonObject;
}

export interface LineRows {
  /** At the end of the line, unless `most` creates of the application wait already. */
  join(row: Omit<WaitingCreate, 'turn' | 'place'>, most: number): Promise<Place | { readonly waiting: number }>;
  /** Says that these callers still wait. Those of `idle` that are missing are inserted again. */
  keep(idle: readonly WaitingCreate[], trying: readonly WaitingCreate[]): Promise<void>;
  leave(place: number): Promise<void>;
  /** In the order of the line. */
  list(limit: number): Promise<Array<Place & Pick<WaitingCreate, 'applicationId' | 'region' | 'why'>>>;
  waitingOf(application: ApplicationId): Promise<number>;
  /** The position among the creates of its application, and how many of them wait. */
  standing(application: ApplicationId, at: Place): Promise<{ readonly position: number; readonly waiting: number }>;
  /** Tells all hosts that a slot may be free or a limit raised, if somebody waits. */
  moved(): Promise<void>;
}
