// The limits of requests that the server sends to user-supplied addresses. Only tests override them.

export interface CallLimits {
  readonly urlCharactersMax: number;
  /** Time limit for resolving the name, connecting and the TLS handshake together. */
  readonly connectMs: number;
  /** The longest deadline of a call, even if its caller requests a longer one. */
  readonly deadlineMsMax: number;
  readonly requestHeadersMax: number;
  readonly requestHeadBytesMax: number;
  readonly requestBodyBytesMax: number;
  /** Maximum number of bytes in the head and the trailers of a response. */
  readonly responseHeadBytesMax: number;
  readonly responseHeadersMax: number;
  /** Maximum number of interim responses (1xx) before the final response. */
  readonly interimResponsesMax: number;
  /** The largest response body, even if the caller accepts a larger one. */
  readonly responseBodyBytesMax: number;
}

const SECOND_MS = 1000;
const KIB = 1024;
const MIB = 1024 * KIB;

export const CALL_LIMITS: CallLimits = {
  urlCharactersMax: 2048,
  connectMs: 10 * SECOND_MS,
  deadlineMsMax: 600 * SECOND_MS,
  requestHeadersMax: 64,
  requestHeadBytesMax: 32 * KIB,
  requestBodyBytesMax: 16 * MIB,
  responseHeadBytesMax: 32 * KIB,
  responseHeadersMax: 100,
  interimResponsesMax: 8,
  responseBodyBytesMax: 64 * MIB,
};
