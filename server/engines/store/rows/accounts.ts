// Accounts and applications.
import type { AccountId, ApplicationId } from '../../../kit/ids.ts';

export interface AccountRow {
  readonly id: AccountId;
  readonly name: string;
  readonly createdAt: Date;
}

export interface Accounts {
  /** The account of the first start, or undefined on an empty database. */
  first(): Promise<AccountRow | undefined>;
  insert(row: AccountRow): Promise<void>;
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
  /** Inserts the application and makes the account its owner; `slug_taken` when the slug stands on this install. `limit` = most living applications of the account. */
  insert(row: ApplicationRow, owner: AccountId, limit: number): Promise<'inserted' | 'slug_taken' | 'limit_reached'>;
  /** Those the account is a member of, newest first, after the row named by `before`. */
  list(
    account: AccountId,
    page: { limit: number; before?: ApplicationId },
  ): Promise<Array<ApplicationRow & { role: Role }>>;
  get(id: ApplicationId, account: AccountId): Promise<(ApplicationRow & { role: Role }) | undefined>;
  /** For the CLI and the compatibility mount, which have no account: by id, by slug, or by exact name. */
  find(idOrName: string): Promise<ApplicationRow[]>;
  byId(id: ApplicationId): Promise<ApplicationRow | undefined>;
  /** Renames when `revision` still stands. */
  rename(id: ApplicationId, revision: number, name: string, now: Date): Promise<ApplicationRow | undefined>;
}
