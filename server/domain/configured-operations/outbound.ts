// What operations need of the engine that sends requests to addresses that somebody gave.

export interface OutboundRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly deadlineMs: number;
  readonly maxResponseBytes: number;
}

export interface OutboundAnswer {
  readonly kind: 'answered';
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

/**
 * `refused`: by a rule, before a connection was opened. `not_sent`: no byte left. `unknown`: the request left at least in
 * part, and may have had an effect.
 */
export interface OutboundFailure {
  readonly kind: 'failed';
  readonly phase: 'refused' | 'not_sent' | 'unknown';
  readonly reason: string;
  /** Of the answer, if its head was received. */
  readonly status?: number;
  /** For callers of the API. */
  readonly words: string;
}

export interface Outbound {
  /** Never rejects. Follows no redirect. */
  send(request: OutboundRequest, signal?: AbortSignal): Promise<OutboundAnswer | OutboundFailure>;
  /** Why the URL would be refused now. Connects to nothing. */
  check(url: string, signal?: AbortSignal): Promise<OutboundFailure | undefined>;
}
