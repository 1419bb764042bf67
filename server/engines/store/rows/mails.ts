// E-mails to be sent, and e-mails sent recently.
import type { MailId } from '../../../kit/ids.ts';

export interface MailRow {
  readonly id: MailId;
  readonly recipient: string;
  readonly subject: string;
  readonly body: string;
  readonly createdAt: Date;
  /**
   * When to send the e-mail or try again. Absent if the e-mail was sent, if no more attempts are made, or if there is
   * no mail server.
   */
  readonly dueAt?: Date;
  readonly attempts: number;
  readonly sentAt?: Date;
  /** Why the last attempt failed. */
  readonly failure?: string;
  /**
   * Whether the e-mail notifies the recipient of items that are waiting for them. It is not sent if none of these items
   * is still waiting (rows/inbox.ts).
   */
  readonly tellsOfWaiting?: boolean;
}

export interface Mails {
  insert(row: MailRow): Promise<void>;
  /** The number of e-mails to the recipient since this time. */
  count(recipient: string, since: Date): Promise<number>;
  due(now: Date, batchSize: number): Promise<MailRow[]>;
  /**
   * Reserves the e-mail for sending until `until` and counts the attempt. False if the e-mail was sent, or if another
   * process has reserved it.
   */
  take(id: MailId, now: Date, until: Date): Promise<boolean>;
  /** Records that the e-mail was sent. Deletes its text, which may contain a code or a link with a secret. */
  markSent(id: MailId, now: Date): Promise<void>;
  /** Records a failed attempt. Without `dueAt`, no more attempts are made. */
  recordFailure(id: MailId, failure: string, dueAt: Date | undefined): Promise<void>;
  /** Newest first. */
  list(limit: number): Promise<MailRow[]>;
  removeOlder(before: Date): Promise<number>;
  /**
   * Deletes unsent e-mails about waiting items if none of their items is still waiting, or if the recipient has turned
   * off such e-mails. Returns the number of deleted e-mails.
   */
  withdraw(): Promise<number>;
}
