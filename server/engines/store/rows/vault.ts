// The wrapped data keys of the vault, and the signing keys.
import type { JsonObject } from '../../../kit/json.ts';

export interface DataKeyRow {
  /** The id of an application or a consumer, or the nil id for the installation. */
  readonly owner: string;
  /** The id of the master key that wraps the data key. */
  readonly master: string;
  readonly wrapped: Buffer;
  readonly createdAt: Date;
}

export interface DataKeyRows {
  get(owner: string): Promise<DataKeyRow | undefined>;
  /**
   * Inserts the row of the installation, which names the master key in use. If another process inserted it first,
   * returns that row.
   */
  insertFirst(row: DataKeyRow): Promise<DataKeyRow>;
  /** Inserts a row, or returns the existing one. Undefined if another master key is in use. */
  insert(row: DataKeyRow): Promise<DataKeyRow | undefined>;
  /**
   * Removes a data key. Data that was sealed with it can never be opened again. Must not be used for the installation.
   */
  remove(owner: string): Promise<void>;
  /** Writes the rows that `work` returns, under a lock: no other process inserts or changes rows during this time. */
  change(work: (rows: readonly DataKeyRow[]) => Promise<readonly DataKeyRow[]>): Promise<void>;
}

export interface SigningKeyRow {
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string;
  readonly publicJwk: JsonObject;
  /** The private key, sealed in the vault. */
  readonly sealed: Buffer;
  readonly createdAt: Date;
  /** Absent while the key is active. */
  readonly retiredAt?: Date;
}

export interface SigningKeyRows {
  /** The key that new signatures use. */
  active(): Promise<SigningKeyRow | undefined>;
  /** Every key, newest first. */
  all(): Promise<SigningKeyRow[]>;
  /** Inserts the first key, unless another process has inserted one. */
  insertFirst(row: SigningKeyRow): Promise<void>;
  /** Retires the active key and inserts the next one, in one transaction. */
  rotate(row: SigningKeyRow): Promise<void>;
}
