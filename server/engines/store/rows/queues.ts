// What waits in the database to be done in the background.
import type { HostId } from '../../../kit/ids.ts';

export interface Queued {
  /** Files of this host that are not stored yet. */
  readonly files: number;
  /** Deliveries of webhooks, of the whole installation. */
  readonly webhooks: number;
  /** E-mails, of the whole installation. */
  readonly mails: number;
}

export interface QueueRows {
  count(host: HostId): Promise<Queued>;
}
