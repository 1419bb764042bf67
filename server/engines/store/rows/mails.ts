// E-mails to be sent, and e-mails sent recently.
import type { MailId } from '../../../kit/ids.ts';

export interface MailRow {
  readonly id: MailId;
  readonly recipient: string;
  readonly subject: string;
  readonly body: string;
  readonly createdAt: Date;
  /** When to send the e-mail or try again. Absent: it was sent or given up, or there is no mail server. */
  readonly dueAt?: Date;
  readonly attempts: number;
  readonly sentAt?: Date;
  /** Why the last attempt failed. */
  readonly failure?: string;
  /** The e-mail tells of waiting things. It is not sent once none of them is waiting any more (rows/inbox.ts). */
  readonly tellsOfWaiting?: boolean;
}

export interface Mails {
  insert(row: MailRow): Promise<void>;
  /** The number of e-mails to the recipient since this time. */
  count(recipient: string, since: Date): Promise<number>;
  due(now: Date, batch: number): Promise<MailRow[]>;
  /**
   * Reserves the e-mail for sending until `until` and counts the attempt. False if another process has reserved it, or
   * it was sent.
   */
  take(id: MailId, now: Date, until: Date): Promise<boolean>;
  /** Deletes the text, which may contain a code or a link with a secret. */
  sent(id: MailId, now: Date): Promise<void>;
  /** Without `dueAt` the e-mail is given up. */
  failed(id: MailId, failure: string, dueAt: Date | undefined): Promise<void>;
  /** Newest first. */
  list(limit: number): Promise<MailRow[]>;
  removeOlder(before: Date): Promise<number>;
  /** Deletes e-mails that were not sent and tell of nothing that is still waiting. Returns their number. */
  withdraw(): Promise<number>;
}
