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

/** The roles and the number of owners, read while the application is locked. */
export interface MembershipState {
  /** The role of the person who requests the change. Absent if this person is no longer a member. */
  readonly requesterRole?: Role;
  /** The role of the member to change. */
  readonly memberRole?: Role;
  readonly owners: number;
}

export interface MembershipChange {
  readonly by: AccountId;
  readonly account: AccountId;
  /** The new role. Absent: the member is removed. */
  readonly role?: Role;
  /**
   * The roles to which the member may still invite people. The member's pending invitations to other roles are revoked.
   */
  readonly mayInviteTo: readonly Role[];
  readonly now: Date;
  /** Called while the application is locked. Throws to refuse the change; then nothing is changed. */
  readonly decide: (state: MembershipState) => void;
}

export interface Members {
  /** Newest first. Starts after the member given as `before`. */
  list(
    application: ApplicationId,
    page: { limit: number; before?: Pick<MemberRow, 'joinedAt' | 'accountId'> },
  ): Promise<MemberRow[]>;
  get(application: ApplicationId, account: AccountId): Promise<MemberRow | undefined>;
  /** Changes the role of a member, or removes the member. Returns the ids of the invitations that were revoked. */
  change(application: ApplicationId, change: MembershipChange): Promise<InvitationId[]>;
}
