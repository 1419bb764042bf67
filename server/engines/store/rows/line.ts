// Creates that are waiting for admission, over all hosts. The host whose caller is waiting keeps the row alive. A row
// that is not kept alive is ignored after some seconds, so that a lost host holds nobody up.
import type { ApplicationId, HostId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

/** The order of the line: by turn, then by place. The applications take turns. */
export interface Place {
  readonly turn: number;
  readonly place: number;
}

export interface WaitingCreate extends Place {
  readonly applicationId: ApplicationId;
  /** The host whose caller is waiting. */
  readonly hostId: HostId;
  /** If set, the create can only be placed on a host of this region. */
  readonly region: string | null;
  /** What the create is waiting for: `host` is a slot, everything else a limit of its application. */
  readonly why: string;
  /** Its latest refusal. */
  readonly refused: JsonObject;
}

export interface LineRows {
  /** Adds the create at the end of the line, unless `most` creates of the application are already waiting. */
  join(row: Omit<WaitingCreate, 'turn' | 'place'>, most: number): Promise<Place | { readonly waiting: number }>;
  /** Records that these callers are still waiting. Those of `idle` that are missing are inserted again. */
  keep(idle: readonly WaitingCreate[], trying: readonly WaitingCreate[]): Promise<void>;
  leave(place: number): Promise<void>;
  /** In the order of the line. */
  list(limit: number): Promise<Array<Place & Pick<WaitingCreate, 'applicationId' | 'region' | 'why'>>>;
  waitingOf(application: ApplicationId): Promise<number>;
  /** The position among the creates of its application, and how many of them are waiting. */
  standing(application: ApplicationId, at: Place): Promise<{ readonly position: number; readonly waiting: number }>;
  /** If somebody is waiting, tells all hosts that a slot may be free or a limit raised. */
  moved(): Promise<void>;
}
