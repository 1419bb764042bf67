// Invitations to applications. Each is accepted at most once.
import type { AccountId, ApplicationId, InvitationId } from '../../../kit/ids.ts';
import type { Role } from './accounts.ts';

export interface InvitationRow {
  readonly id: InvitationId;
  readonly applicationId: ApplicationId;
  /** In lower case. */
  readonly email: string;
  readonly role: Role;
  /** SHA-256 of the secret. */
  readonly hash: Buffer;
  readonly invitedBy: AccountId;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly acceptedAt?: Date;
  readonly acceptedBy?: AccountId;
  readonly revokedAt?: Date;
}

/** The facts that decide whether an invitation is allowed, read while the application is locked. */
export interface InvitingState {
  /** The role of the inviter. Absent if the inviter is no longer a member. */
  readonly role?: Role;
  readonly pending: number;
  /** The creation times of the invitations since `countedSince`, oldest first. */
  readonly recent: readonly Date[];
}

export interface Invitations {
  /** Calls `decide` while the application is locked. `decide` throws to refuse the invitation. */
  insert(row: InvitationRow, countedSince: Date, decide: (state: InvitingState) => void): Promise<void>;
  /** Pending invitations and those that ended after `endedSince`, newest first. */
  list(
    application: ApplicationId,
    endedSince: Date,
    page: { limit: number; before?: InvitationId },
  ): Promise<InvitationRow[]>;
  byHash(hash: Buffer): Promise<InvitationRow | undefined>;
  /** False if the invitation is not pending. */
  revoke(application: ApplicationId, id: InvitationId, now: Date): Promise<boolean>;
  /**
   * Accepts a pending invitation. The account becomes a member with the role that `roleFor` returns for the account's
   * current role. Undefined if the invitation is not pending.
   */
  accept(
    row: Pick<InvitationRow, 'id' | 'applicationId'>,
    account: AccountId,
    now: Date,
    roleFor: (currentRole: Role | undefined) => Role,
  ): Promise<Role | undefined>;
  /** Removes invitations that ended before this time. Returns the number of rows. */
  removeEnded(before: Date): Promise<number>;
}
