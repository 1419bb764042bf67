// The queue of creates that are waiting for admission, across all hosts. Each row is refreshed by the host whose caller
// is waiting. A row that has not been refreshed for a few seconds is ignored, so that a lost host does not block the
// queue.
import type { ApplicationId, HostId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';

/** A position in the queue, which is ordered by `turn`, then by `place`. The applications take turns. */
export interface QueuePosition {
  readonly turn: number;
  readonly place: number;
}

export interface WaitingCreate extends QueuePosition {
  readonly applicationId: ApplicationId;
  /** The host that received the create. */
  readonly hostId: HostId;
  /** If set, the create can only be placed on a host in this region. */
  readonly region: string | null;
  /** The reason for waiting: `host` means that no slot is free; any other value is a limit of the application. */
  readonly why: string;
  /** The latest refusal of the create. */
  readonly refused: JsonObject;
}

export interface LineRows {
  /**
   * Adds the create to the queue, after the other creates of its application, unless `maxWaiting` of them are already
   * waiting.
   */
  join(
    row: Omit<WaitingCreate, 'turn' | 'place'>,
    maxWaiting: number,
  ): Promise<QueuePosition | { readonly waiting: number }>;
  /**
   * Refreshes the rows of creates that are still waiting. If the row of a create is missing, it is inserted again only
   * for `idleCreates`. `tryingCreates` are those for which an attempt to place the session is in progress.
   */
  refresh(idleCreates: readonly WaitingCreate[], tryingCreates: readonly WaitingCreate[]): Promise<void>;
  leave(place: number): Promise<void>;
  /** In the order of the queue. */
  list(limit: number): Promise<Array<QueuePosition & Pick<WaitingCreate, 'applicationId' | 'region' | 'why'>>>;
  waitingOf(application: ApplicationId): Promise<number>;
  /** The position of the create among the waiting creates of its application, and the number of these creates. */
  positionOf(
    application: ApplicationId,
    at: QueuePosition,
  ): Promise<{ readonly position: number; readonly waiting: number }>;
  /** If any create is waiting, notifies all hosts that a slot may be free or a limit may have been raised. */
  announceMove(): Promise<void>;
}
