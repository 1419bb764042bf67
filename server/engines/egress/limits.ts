// Every bound of a session's egress proxy, named. Tests shorten them; nobody else changes them.

export interface EgressLimits {
  /** Connections of one browser at once; Chromium itself keeps 32 per kind and context. */
  readonly connectionsMax: number;
  /** Plain requests in flight on one connection; Chromium sends one at a time. */
  readonly requestsPerConnectionMax: number;
  /** Connections that read half a MiB at once; the others read in pieces of 64 KiB. */
  readonly bigReadsMax: number;
  /** Head of a request or of an answer; Chromium's own bound for answers. */
  readonly headBytesMax: number;
  /** From the first byte of a request to the end of its head. */
  readonly headMs: number;
  /** A browser's connection without a request. */
  readonly unusedMs: number;
  readonly resolveMs: number;
  /** All attempts to connect to one target together. */
  readonly connectMs: number;
  /** An attempt that has not succeeded after this long gets company by the next address. */
  readonly nextAddressMs: number;
  /** Addresses of one name that are tried. */
  readonly addressesMax: number;
  /** A connection on which no byte moves in either direction. */
  readonly idleMs: number;
  /** The same, once one side has said that it is done. */
  readonly halfClosedIdleMs: number;
  /** How often idle connections are looked for. */
  readonly sweepMs: number;
  readonly tlsHandshakeMs: number;
  /** Refusals written to the log, per session; the counters go on. */
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
