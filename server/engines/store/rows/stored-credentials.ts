// Versioned credentials for external services. The value of each version is sealed in the vault and bound to its row.
import type { ApplicationId, KeyId } from '../../../kit/ids.ts';

export interface StoredCredentialRow {
  readonly applicationId: ApplicationId;
  readonly id: string;
  /** The version in use. */
  readonly version: number;
  readonly revision: number;
  readonly createdAt: Date;
  readonly rotatedAt: Date;
  readonly lastUsedAt?: Date;
  readonly deletedAt?: Date;
}

export interface CredentialContent {
  readonly type: string;
  readonly label?: string;
  readonly hosts: readonly string[];
  readonly origins: readonly string[];
  readonly expiresAt?: Date;
  readonly fingerprint: string;
}

export interface CredentialVersionRow extends CredentialContent {
  readonly applicationId: ApplicationId;
  readonly credentialId: string;
  readonly version: number;
  readonly sealed: Buffer;
  readonly createdAt: Date;
  /** When the version is destroyed. Absent for the version in use. */
  readonly destroyAt?: Date;
}

/** A credential and its version in use. */
export interface StoredCredentialWithVersion extends StoredCredentialRow {
  readonly current: CredentialVersionRow;
  /** When the previous version is destroyed. */
  readonly previousUntil?: Date;
}

export type NewVersion = CredentialContent & Pick<CredentialVersionRow, 'sealed'>;

export interface CredentialUse {
  readonly applicationId: ApplicationId;
  readonly credentialId: string;
  readonly operationId: string;
  readonly keyId: KeyId;
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string;
  readonly calls: number;
}

export interface StoredCredentialRows {
  /** Deleted credentials are not found. */
  get(application: ApplicationId, id: string): Promise<StoredCredentialWithVersion | undefined>;
  /** Ordered by id. */
  list(application: ApplicationId): Promise<StoredCredentialWithVersion[]>;
  /**
   * Returns the next version number for a credential with this id. No earlier version, not even of a deleted
   * credential, has this number.
   */
  nextVersion(application: ApplicationId, id: string): Promise<number>;
  /**
   * Inserts a credential, or revives a deleted one. Undefined if the credential exists and is not deleted, or if
   * `version` has been used in the meantime.
   */
  insert(
    application: ApplicationId,
    id: string,
    version: number,
    content: NewVersion,
    maxCredentials: number,
    now: Date,
  ): Promise<'inserted' | 'limit_reached' | undefined>;
  /**
   * Replaces the version in use, if `revision` is still the current one. The previous version is destroyed at
   * `destroyAt`.
   */
  rotate(
    application: ApplicationId,
    id: string,
    revision: number,
    version: number,
    content: NewVersion,
    times: { readonly now: Date; readonly destroyAt: Date },
  ): Promise<boolean>;
  /** Returns the newest version before `version` that has not been destroyed. */
  previous(
    application: ApplicationId,
    id: string,
    version: number,
    now: Date,
  ): Promise<CredentialVersionRow | undefined>;
  /** Destroys all versions, then marks the credential as deleted, if `revision` is still current. */
  delete(application: ApplicationId, id: string, revision: number, now: Date): Promise<boolean>;
  /** Deletes versions whose `destroyAt` has passed. Returns their number. */
  destroyDue(now: Date): Promise<number>;
  /** Returns the operations whose newest or published revision refers to one of the credentials, ordered by id. */
  referencesTo(application: ApplicationId, ids: readonly string[]): Promise<CredentialReference[]>;
  /** Counts a call with the credential. */
  count(use: Omit<CredentialUse, 'calls'>, now: Date): Promise<void>;
  /** Removes and returns at most `batchSize` counts of the days before `before`. */
  takeUses(before: string, batchSize: number): Promise<CredentialUse[]>;
}

export interface CredentialReference {
  readonly credentialId: string;
  readonly operationId: string;
  /**
   * Whether the operation is published and its published revision refers to the credential, so that agents can use it.
   */
  readonly isPublished: boolean;
}
