// What the vault keeps: its data keys, wrapped by a master key.

export interface DataKeyRow {
  /** An application, or INSTALLATION. */
  readonly owner: string;
  /** The id of the master key that wraps it. */
  readonly master: string;
  readonly wrapped: Buffer;
  readonly createdAt: Date;
}

/** The owner of what belongs to no application. Its row says which master key is in use. */
export const INSTALLATION = '00000000-0000-0000-0000-000000000000';

export interface DataKeyRows {
  get(owner: string): Promise<DataKeyRow | undefined>;
  /** Adds the first row. Another process may have been first: its row is returned. */
  insertFirst(row: DataKeyRow): Promise<DataKeyRow>;
  /** Adds a row, or returns the one that stands. Undefined if another master key is in use. */
  insert(row: DataKeyRow): Promise<DataKeyRow | undefined>;
  /** Writes the rows that `work` returns. Nobody else adds or changes rows meanwhile. */
  change(work: (rows: readonly DataKeyRow[]) => Promise<readonly DataKeyRow[]>): Promise<void>;
}
