// Items that are waiting for members: Actions that they may decide and hand-offs that they may claim. The rows also
// record which e-mail notified which member of which item.
import type { AccountId, ActionId, ApplicationId, HandoffId, MailId } from '../../../kit/ids.ts';
import type { Role } from './accounts.ts';
import type { HandoffRow } from './handoffs.ts';

/** The roles that may decide Actions or claim hand-offs. */
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
  /** Changes whenever the set of waiting items changes. */
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
  /**
   * Only items that have been waiting at least since this time. Newer items are left out, because they may soon be
   * decided or more items may follow.
   */
  readonly waitingSince: Date;
  /** Only accounts that were last notified at or before this time. */
  readonly notifiedBefore: Date;
}

export interface InboxRows {
  /** Only applications in which something is waiting, ordered by name. */
  counts(account: AccountId, roles: InboxRoles, now: Date): Promise<readonly InboxCount[]>;
  applicationsOf(account: AccountId): Promise<readonly ApplicationId[]>;
  settings(account: AccountId): Promise<NotificationSettings>;
  changeSettings(account: AccountId, settings: Partial<NotificationSettings>): Promise<NotificationSettings>;
  /**
   * Accounts that have e-mails turned on and a verified address, and have not been notified of at least one item that
   * is waiting for them.
   */
  accountsToNotify(roles: InboxRoles, conditions: NotifyConditions, limit: number): Promise<readonly AccountId[]>;
  /**
   * Records this time as the time of the account's last notification, so that the pause between e-mails begins again.
   */
  postponeNotification(account: AccountId, now: Date): Promise<void>;
  /**
   * Records that this e-mail notifies the account of the items that are waiting for it, and returns these items, oldest
   * first. None of them can be decided before the transaction ends. Undefined if no item is waiting, another process is
   * notifying the account, or the account has turned e-mails off.
   */
  recordNotification(
    account: AccountId,
    mail: MailId,
    roles: InboxRoles,
    conditions: NotifyConditions,
    limit: number,
  ): Promise<{ readonly address: string; readonly waiting: readonly WaitingRow[] } | undefined>;
}
