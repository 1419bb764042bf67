// Mails on their way, and those that were sent lately.
import type { MailId } from '../../../kit/ids.ts';

export interface MailRow {
  readonly id: MailId;
  readonly recipient: string;
  readonly subject: string;
  readonly body: string;
  readonly createdAt: Date;
  /** When it is to be sent, or tried again. Absent: it was sent, was given up, or there is no mail server. */
  readonly dueAt?: Date;
  readonly attempts: number;
  readonly sentAt?: Date;
  /** Why the last attempt failed. */
  readonly failure?: string;
}

export interface Mails {
  insert(row: MailRow): Promise<void>;
  /** How many were written to the recipient since a time. */
  count(recipient: string, since: Date): Promise<number>;
  due(now: Date, batch: number): Promise<MailRow[]>;
  /** Takes it for sending until `until`, counting the attempt. False when another process has it, or it was sent. */
  take(id: MailId, now: Date, until: Date): Promise<boolean>;
  /** Its text is forgotten: it may have a code or a link with a secret. */
  sent(id: MailId, now: Date): Promise<void>;
  /** Without `dueAt` it is given up. */
  failed(id: MailId, failure: string, dueAt: Date | undefined): Promise<void>;
  /** Newest first. */
  list(limit: number): Promise<MailRow[]>;
  removeOlder(before: Date): Promise<number>;
}
