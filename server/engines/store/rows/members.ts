// The members of applications.
import type { AccountId, ApplicationId, InvitationId } from '../../../kit/ids.ts';
import type { Role } from './accounts.ts';

export interface MemberRow {
  readonly accountId: AccountId;
  readonly name: string;
  readonly email?: string;
  readonly role: Role;
  readonly joinedAt: Date;
  readonly lastActiveAt?: Date;
}

/** Roles while the application is locked. */
export interface MembershipState {
  /** Of who asks for the change. Absent: no member any more. */
  readonly by?: Role;
  /** Of whom it concerns. */
  readonly member?: Role;
  readonly owners: number;
}

export interface MembershipChange {
  readonly by: AccountId;
  readonly account: AccountId;
  /** Absent: removed. */
  readonly role?: Role;
  /** Roles that the member may still invite to; pending invitations of the member to others are revoked. */
  readonly mayInviteTo: readonly Role[];
  readonly now: Date;
  /** Decides under the lock. Throws to refuse: then nothing has changed. */
  readonly decide: (state: MembershipState) => void;
}

export interface Members {
  /** Newest first, after a member who joined then. */
  list(
    application: ApplicationId,
    page: { limit: number; before?: Pick<MemberRow, 'joinedAt' | 'accountId'> },
  ): Promise<MemberRow[]>;
  get(application: ApplicationId, account: AccountId): Promise<MemberRow | undefined>;
  /** Returns the invitations that were revoked. */
  change(application: ApplicationId, change: MembershipChange): Promise<InvitationId[]>;
}
