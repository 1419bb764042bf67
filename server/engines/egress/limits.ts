// The limits of a session's egress proxy. Only tests override them.

export interface EgressLimits {
  /**
   * Maximum number of concurrent connections of one browser. Chromium itself keeps at most 32 per kind of connection
   * and browser context.
   */
  readonly connectionsMax: number;
  /** Maximum number of plain requests in flight on one connection. Chromium sends one at a time. */
  readonly requestsPerConnectionMax: number;
  /** Maximum number of connections with a read buffer of 512 KiB. The others have at most 64 KiB. */
  readonly bigReadsMax: number;
  /** Maximum number of bytes in the head of a request or a response. Chromium has the same limit for responses. */
  readonly headBytesMax: number;
  /** Time limit from the first byte of a request to the end of its head. */
  readonly headMs: number;
  /** How long a connection of the browser may stay open without a request. */
  readonly unusedMs: number;
  readonly resolveMs: number;
  /** Time limit for all attempts to connect to one target. */
  readonly connectMs: number;
  /** If an attempt to connect takes longer, the next address is tried concurrently. */
  readonly nextAddressMs: number;
  /** Maximum number of addresses that are tried for one name. */
  readonly addressesMax: number;
  /** A connection without traffic in either direction is closed after this time. */
  readonly idleMs: number;
  /** Replaces `idleMs` for a connection if one of its sides has ended. */
  readonly halfClosedIdleMs: number;
  /** The interval at which idle connections are found and closed. */
  readonly sweepMs: number;
  readonly tlsHandshakeMs: number;
  /** Maximum number of refusals per session that are written to the server log. All refusals are counted. */
  readonly refusalsLoggedMax: number;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

export const EGRESS_LIMITS: EgressLimits = {
  connectionsMax: 1024,
  requestsPerConnectionMax: 8,
  bigReadsMax: 16,
  headBytesMax: 256 * 1024,
  headMs: MINUTE_MS,
  unusedMs: 5 * MINUTE_MS,
  resolveMs: 10 * SECOND_MS,
  connectMs: 20 * SECOND_MS,
  nextAddressMs: 250,
  addressesMax: 8,
  idleMs: 30 * MINUTE_MS,
  halfClosedIdleMs: MINUTE_MS,
  sweepMs: 10 * SECOND_MS,
  tlsHandshakeMs: 10 * SECOND_MS,
  refusalsLoggedMax: 200,
};
