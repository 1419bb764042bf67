// What waits for members: Actions that they may decide and hand-offs that they may claim. Also records which e-mails
// told them about these.
import type { AccountId, ActionId, ApplicationId, HandoffId, MailId } from '../../../kit/ids.ts';
import type { Role } from './accounts.ts';
import type { HandoffRow } from './handoffs.ts';

/** The roles that may decide or claim. */
export interface InboxRoles {
  readonly member: readonly Role[];
  readonly owner: readonly Role[];
  readonly handoff: readonly Role[];
}

export interface InboxCount {
  readonly applicationId: ApplicationId;
  readonly applicationName: string;
  readonly approvals: number;
  readonly handoffs: number;
  /** Changes whenever something else is waiting. */
  readonly mark: string;
}

export type WaitingRow = {
  readonly applicationId: ApplicationId;
  readonly applicationName: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
} & (
  | {
      readonly kind: 'approval';
      readonly id: ActionId;
      readonly operationId: string;
      readonly operationRevision: number;
    }
  | { readonly kind: 'handoff'; readonly id: HandoffId; readonly reason: HandoffRow['reason'] }
);

export interface NotificationSettings {
  readonly mails: boolean;
  readonly mutedApplications: readonly ApplicationId[];
}

export interface NotifyConditions {
  readonly now: Date;
  /** Only things that have been waiting at least since then: newer things may be decided at once, or more may come. */
  readonly waitingSince: Date;
  /** Only accounts that were last told before this time. */
  readonly notifiedBefore: Date;
}

export interface InboxRows {
  /** Only applications in which something is waiting, ordered by name. */
  counts(account: AccountId, roles: InboxRoles, now: Date): Promise<readonly InboxCount[]>;
  applicationsOf(account: AccountId): Promise<readonly ApplicationId[]>;
  settings(account: AccountId): Promise<NotificationSettings>;
  changeSettings(account: AccountId, settings: Partial<NotificationSettings>): Promise<NotificationSettings>;
  /**
   * Accounts that want e-mails, have a verified address, and have not been told of something that is waiting for them.
   */
  untold(roles: InboxRoles, when: NotifyConditions, limit: number): Promise<readonly AccountId[]>;
  /** Records this time as the last one at which the account was told, so that the pause begins again. */
  pause(account: AccountId, now: Date): Promise<void>;
  /**
   * Records that this e-mail tells the account about the things that wait for it, oldest first. None of them can be
   * decided before the transaction ends. Undefined if another process is telling the account, or the account no longer
   * wants e-mails.
   */
  tell(
    account: AccountId,
    mail: MailId,
    roles: InboxRoles,
    when: NotifyConditions,
    limit: number,
  ): Promise<{ readonly address: string; readonly waiting: readonly WaitingRow[] } | undefined>;
}
