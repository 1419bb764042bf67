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

/** What an application has while it is locked. */
export interface InvitingState {
  /** Role of the inviter. Absent: no member any more. */
  readonly role?: Role;
  readonly pending: number;
  /** When those since `countedSince` were created, oldest first. */
  readonly recent: readonly Date[];
}

export interface Invitations {
  /** `decide` throws to refuse, under a lock of the application. */
  insert(row: InvitationRow, countedSince: Date, decide: (state: InvitingState) => void): Promise<void>;
  /** Pending ones and those that ended after `endedSince`, newest first. */
  list(
    application: ApplicationId,
    endedSince: Date,
    page: { limit: number; before?: InvitationId },
  ): Promise<InvitationRow[]>;
  byHash(hash: Buffer): Promise<InvitationRow | undefined>;
  /** False if it is not pending. */
  revoke(application: ApplicationId, id: InvitationId, now: Date): Promise<boolean>;
  /**
   * Accepts a pending one, and makes the account a member with the role that `roleFor` says of the one that it had. Undefined if
   * it is not pending.
   */
  accept(
    row: Pick<InvitationRow, 'id' | 'applicationId'>,
    account: AccountId,
    now: Date,
    roleFor: (had: Role | undefined) => Role,
  ): Promise<Role | undefined>;
  /** Removes those that ended before. Returns how many. */
  removeEnded(before: Date): Promise<number>;
}
