// Accounts and applications.
import type { AccountId, ApplicationId, TokenId } from '../../../kit/ids.ts';

export interface AccountRow {
  readonly id: AccountId;
  readonly name: string;
  readonly createdAt: Date;
  /** In lower case. Absent: nobody can sign in to the account. */
  readonly email?: string;
  readonly emailVerifiedAt?: Date;
  /** Argon2id, in PHC format. */
  readonly passwordHash?: string;
  readonly passwordChangedAt?: Date;
  /** The seed of the one-time codes, sealed. Takes effect when `totpEnabledAt` is set. */
  readonly totpSealed?: string;
  readonly totpEnabledAt?: Date;
  /** The time step of the last accepted code. No code is accepted twice. */
  readonly totpLastStep?: number;
}

/** `undefined` removes the value. */
export type AccountChange = {
  readonly [Name in Exclude<keyof AccountRow, 'id' | 'createdAt'>]?: AccountRow[Name] | undefined;
};

export interface Accounts {
  /** Returns the account that the first start created; undefined if the database is empty. */
  first(): Promise<AccountRow | undefined>;
  insert(row: AccountRow): Promise<'inserted' | 'email_taken'>;
  get(id: AccountId): Promise<AccountRow | undefined>;
  byEmail(email: string): Promise<AccountRow | undefined>;
  /** Whether any account has a way to sign in. */
  canAnyoneSignIn(): Promise<boolean>;
  change(id: AccountId, change: AccountChange): Promise<'changed' | 'email_taken'>;
  /** Accepts the code of this time step. Returns false if this code or a later one was accepted before. */
  spendTotpStep(id: AccountId, step: number): Promise<boolean>;
  /** Replaces all recovery codes of the account. Stores their hashes only. */
  replaceRecoveryCodes(id: AccountId, hashes: readonly Buffer[]): Promise<void>;
  /** Marks a recovery code as used. Returns false if no unused code has this hash. */
  spendRecoveryCode(id: AccountId, hash: Buffer, now: Date): Promise<boolean>;
  countRecoveryCodes(id: AccountId): Promise<number>;
}

export type Role = 'owner' | 'admin' | 'developer' | 'viewer';

export interface ApplicationRow {
  readonly id: ApplicationId;
  readonly name: string;
  readonly slug: string;
  readonly billingAccountId: AccountId;
  readonly revision: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface Applications {
  /**
   * Inserts the application and makes the account its owner. `slug_taken`: another application of the installation has
   * the slug. `limit`: the maximum number of applications per account. `tokenToRestrict`: a token to which no
   * application has been assigned. It is restricted to the new application. If an application has been assigned to it
   * in the meantime, nothing is inserted (`token_used`).
   */
  insert(
    row: ApplicationRow,
    owner: AccountId,
    limit: number,
    tokenToRestrict?: TokenId,
  ): Promise<'inserted' | 'slug_taken' | 'limit_reached' | 'token_used'>;
  /** The applications of which the account is a member, newest first, after the row named by `before`. */
  list(
    account: AccountId,
    page: { limit: number; before?: ApplicationId },
  ): Promise<Array<ApplicationRow & { role: Role }>>;
  get(id: ApplicationId, account: AccountId): Promise<(ApplicationRow & { role: Role }) | undefined>;
  /**
   * Finds applications by id, then by slug, then by exact name. Used by the CLI and the compatibility mount, which have
   * no account.
   */
  find(idOrName: string): Promise<ApplicationRow[]>;
  byId(id: ApplicationId): Promise<ApplicationRow | undefined>;
  /** Renames the application if its revision is still `revision`. */
  rename(id: ApplicationId, revision: number, name: string, now: Date): Promise<ApplicationRow | undefined>;
}
