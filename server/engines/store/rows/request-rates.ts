// The token buckets of credentials, over all hosts. Hosts take several tokens at once.

export interface Bucket {
  /** Of the credential. */
  readonly id: string;
  readonly what: 'reads' | 'writes';
  readonly perMinute: number;
}

export interface RequestRateRows {
  /** Takes up to `tokens` of a bucket. `waitMs`: how long until it has one, if none were left. */
  take(bucket: Bucket, tokens: number): Promise<{ readonly granted: number; readonly waitMs: number }>;
  /** Removes the rows of buckets that are full. */
  sweep(): Promise<void>;
}
