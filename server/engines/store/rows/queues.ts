// The amount of background work that waits in the database.
import type { HostId } from '../../../kit/ids.ts';

export interface Queued {
  /** Files of this host that have yet to be stored. */
  readonly files: number;
  /** Deliveries of webhooks in the whole installation. */
  readonly webhooks: number;
  /** E-mails in the whole installation. */
  readonly mails: number;
}

export interface QueueRows {
  count(host: HostId): Promise<Queued>;
}
