// The token buckets of credentials, shared by all hosts. A host takes several tokens at once.

export interface TokenBucket {
  /** The id of the credential. */
  readonly id: string;
  readonly what: 'reads' | 'writes';
  readonly perMinute: number;
}

export interface RequestRateRows {
  /** Takes up to `tokens` from a bucket. `waitMs`: if the bucket had no token, the time until it has one. */
  take(bucket: TokenBucket, tokens: number): Promise<{ readonly granted: number; readonly waitMs: number }>;
  /** Removes the rows of buckets that are full. */
  sweep(): Promise<void>;
}
