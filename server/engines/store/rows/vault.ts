// The wrapped data keys of the vault, and the keys that sign.
import type { JsonObject } from '../../../kit/json.ts';

export interface DataKeyRow {
  /** An application, or the nil id for the installation. */
  readonly owner: string;
  /** The id of the master key that wraps it. */
  readonly master: string;
  readonly wrapped: Buffer;
  readonly createdAt: Date;
}

export interface DataKeyRows {
  get(owner: string): Promise<DataKeyRow | undefined>;
  /** Adds the row of the installation, which says which master key is in use. Another process may have been first: its row is returned. */
  insertFirst(row: DataKeyRow): Promise<DataKeyRow>;
  /** Adds a row, or returns the one that stands. Undefined if another master key is in use. */
  insert(row: DataKeyRow): Promise<DataKeyRow | undefined>;
  /** Writes the rows that `work` returns. Nobody else adds or changes rows meanwhile. */
  change(work: (rows: readonly DataKeyRow[]) => Promise<readonly DataKeyRow[]>): Promise<void>;
}

export interface SigningKeyRow {
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string;
  readonly publicJwk: JsonObject;
  /** The private key, sealed in the vault. */
  readonly sealed: Buffer;
  readonly createdAt: Date;
  /** Absent: it signs. */
  readonly retiredAt?: Date;
}

export interface SigningKeyRows {
  /** The one that signs. */
  active(): Promise<SigningKeyRow | undefined>;
  /** Every key, newest first. */
  all(): Promise<SigningKeyRow[]>;
  /** Adds the first key. Another process may have been first: then nothing is added. */
  insertFirst(row: SigningKeyRow): Promise<void>;
  /** Retires the key that signs and adds the next one, in one transaction. */
  rotate(row: SigningKeyRow): Promise<void>;
}
