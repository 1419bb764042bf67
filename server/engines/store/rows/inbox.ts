// What waits for members: Actions that they may decide and hand-offs that they may claim; and which mails told them.
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
  /** Differs if something else waits. */
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

export interface TellWhen {
  readonly now: Date;
  /** Only what waits since then: other things may be decided at once, or more may come. */
  readonly waitsSince: Date;
  /** Only accounts that were not told later. */
  readonly toldBefore: Date;
}

export interface InboxRows {
  /** By name of the application. Only applications in which something waits. */
  counts(account: AccountId, roles: InboxRoles, now: Date): Promise<readonly InboxCount[]>;
  applicationsOf(account: AccountId): Promise<readonly ApplicationId[]>;
  settings(account: AccountId): Promise<NotificationSettings>;
  changeSettings(account: AccountId, settings: Partial<NotificationSettings>): Promise<NotificationSettings>;
  /** Accounts that want mails, have a verified address, and were not told of something that waits for them. */
  untold(roles: InboxRoles, when: TellWhen, limit: number): Promise<readonly AccountId[]>;
  /** The account is told no sooner than the pause after this time. */
  pause(account: AccountId, now: Date): Promise<void>;
  /**
   * Notes that this mail tells the account of what waits for it, oldest first. Nothing of it can be decided before the transaction
   * ends. Undefined if another process tells the account, or it does not want mails any more.
   */
  tell(
    account: AccountId,
    mail: MailId,
    roles: InboxRoles,
    when: TellWhen,
    limit: number,
  ): Promise<{ readonly address: string; readonly waiting: readonly WaitingRow[] } | undefined>;
}
