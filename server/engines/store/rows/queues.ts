// The amount of background work that waits in the database.
import type { HostId } from '../../../kit/ids.ts';

export interface QueueCounts {
  /** The number of files of this host that have yet to be stored. */
  readonly files: number;
  /** The number of waiting webhook deliveries in the whole installation. */
  readonly webhooks: number;
  /** The number of waiting e-mails in the whole installation. */
  readonly mails: number;
}

export interface QueueRows {
  count(host: HostId): Promise<QueueCounts>;
}
