// The interface of the engine that sends requests to addresses that applications configure.

export interface OutboundRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly deadlineMs: number;
  readonly maxResponseBytes: number;
}

export interface OutboundResponse {
  readonly kind: 'answered';
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

/**
 * `refused`: a rule refused the request before a connection was opened. `not_sent`: no byte was sent. `unknown`: the
 * request was sent at least in part, and may have had an effect.
 */
export interface OutboundFailure {
  readonly kind: 'failed';
  readonly phase: 'refused' | 'not_sent' | 'unknown';
  readonly reason: string;
  /** Status of the response, if its headers were received. */
  readonly status?: number;
  /** A sentence that describes the failure to callers of the API. */
  readonly message: string;
}

export interface Outbound {
  /** Never rejects. Does not follow redirects. */
  send(request: OutboundRequest, signal?: AbortSignal): Promise<OutboundResponse | OutboundFailure>;
  /** Returns the failure if the URL would be refused now, otherwise undefined. Does not open a connection. */
  check(url: string, signal?: AbortSignal): Promise<OutboundFailure | undefined>;
}
