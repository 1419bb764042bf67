// The rows of the vault: data keys, wrapped by a master key.

export interface DataKeyRow {
  /** The id of an application or a consumer, or INSTALLATION_ID. */
  readonly owner: string;
  /** The id of the master key that wraps the data key. */
  readonly master: string;
  readonly wrapped: Buffer;
  readonly createdAt: Date;
}

/** The owner of data that belongs to no application. The row of this owner contains the id of the master key in use. */
export const INSTALLATION_ID = '00000000-0000-0000-0000-000000000000';

export interface DataKeyRows {
  get(owner: string): Promise<DataKeyRow | undefined>;
  /** Inserts the row of the installation. If another process has inserted one, returns that row. */
  insertFirst(row: DataKeyRow): Promise<DataKeyRow>;
  /** Inserts a row, or returns the existing one. Undefined if the key in `master` is not the master key in use. */
  insert(row: DataKeyRow): Promise<DataKeyRow | undefined>;
  /** Removes the data key of an owner. Data sealed with it can never be opened again. */
  remove(owner: string): Promise<void>;
  /** Writes the rows that `work` returns, under a lock: no other process inserts or changes rows meanwhile. */
  change(work: (rows: readonly DataKeyRow[]) => Promise<readonly DataKeyRow[]>): Promise<void>;
}
