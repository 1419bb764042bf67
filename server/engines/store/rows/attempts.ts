// Rate-limited attempts, such as sign-ins, counted per address, account or application across all hosts.

export interface AttemptKey {
  /** The name of the limit, such as `sign_in.address`. */
  readonly tally: string;
  /** Digest of the address, account or application that makes the attempt. */
  readonly digest: Buffer;
}

export interface AttemptLimit {
  readonly max: number;
  readonly withinMs: number;
}

/** `at`: identifies the attempt, if it was counted. `waitMs`: how long to wait until an attempt is admitted again. */
export type CountedAttempt = { readonly at: string } | { readonly waitMs: number };

export interface AttemptRows {
  /** Counts an attempt, if fewer than `max` were counted within the period. */
  count(key: AttemptKey, limit: AttemptLimit): Promise<CountedAttempt>;
  takeBack(key: AttemptKey, at: string): Promise<void>;
  /**
   * Removes the rows whose period is over. If more than `rowsMax` rows remain, also removes those whose periods end
   * first, so that at most `rowsMax` are left.
   */
  sweep(rowsMax: number): Promise<void>;
}
