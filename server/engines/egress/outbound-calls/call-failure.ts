// The reasons why a call failed, and whether the call may have had an effect. The messages are for callers of the API,
// so they name a rule and never an address, the content of a response or a system error.
import { WaitExpired } from '../../../kit/wait.ts';
import { FailedError, RefusedError } from '../failure.ts';
import type { AddressRule } from '../rules.ts';

/**
 * `refused`: a rule refused the call before a connection was opened. `not_sent`: no byte of the request was sent, so
 * the call had no effect and may be repeated. `unknown`: at least a part of the request was sent, so the call may have
 * had an effect.
 */
export type CallPhase = 'refused' | 'not_sent' | 'unknown';

const FAILURE_TEXTS = {
  bad_url: 'The URL is not valid, or longer than 2048 characters.',
  not_https: 'The URL must begin with https://. http is allowed only for an address that the operator has allowed.',
  user_info: 'The URL must not contain a user name or password.',
  bad_method: 'The method is not one of GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS.',
  invalid_header:
    'The name or value of a header is not valid. A value may contain only ASCII characters without control characters.',
  repeated_header: 'A header occurs more than once. Upper and lower case are the same.',
  reserved_header: 'A header has a reserved name, such as Host, Content-Length, Connection or Cookie. Omit it.',
  too_many_headers: 'The request has more than 64 headers, or more than 32 KiB of headers.',
  body_too_large: 'The body of the request is larger than 16 MiB.',
  address_not_allowed: 'The address is not allowed.',
  name_not_resolved: 'The host name could not be resolved.',
  connect_failed: 'The host did not accept the connection.',
  connect_timed_out: 'The host did not accept a connection within 10 seconds.',
  certificate_refused: 'The certificate of the host is not trusted, has expired, or is for another name.',
  tls_failed: 'The host did not complete the TLS handshake.',
  timed_out: 'The host did not respond in time.',
  cancelled: 'The call was cancelled.',
  closed_early: 'The host closed the connection before the response was complete.',
  bad_answer: 'The host did not send a valid HTTP response.',
  answer_head_too_large: 'The response has more than 100 headers, or more than 32 KiB of headers.',
  answer_too_large: 'The response is larger than allowed.',
  answer_encoded: 'The response is compressed, although the request asked for an uncompressed response.',
} as const;

export type CallErrorKind = keyof typeof FAILURE_TEXTS;

export interface CallFailure {
  readonly kind: 'failed';
  readonly phase: CallPhase;
  readonly reason: CallErrorKind;
  /** Set only if the reason is `address_not_allowed`. */
  readonly rule?: AddressRule;
  /** The status of the response, if its head was received. */
  readonly status?: number;
  readonly message: string;
}

/** Thrown inside the engine; `send` returns it as a CallFailure. */
export class CallError extends Error {
  readonly errorKind: CallErrorKind;
  readonly rule: AddressRule | undefined;
  readonly status: number | undefined;

  constructor(errorKind: CallErrorKind, { rule, status }: { rule?: AddressRule; status?: number } = {}) {
    super(errorKind);
    this.name = 'CallError';
    this.errorKind = errorKind;
    this.rule = rule;
    this.status = status;
  }
}

const REFUSAL_KINDS: ReadonlySet<CallErrorKind> = new Set([
  'bad_url',
  'not_https',
  'user_info',
  'bad_method',
  'invalid_header',
  'repeated_header',
  'reserved_header',
  'too_many_headers',
  'body_too_large',
  'address_not_allowed',
]);

/** Converts an error to a CallFailure. `isSent`: whether any byte of the request may have been sent. */
export function failureOf(error: unknown, isSent: boolean): CallFailure {
  const { errorKind, rule, status } = callErrorOf(error, isSent);
  return {
    kind: 'failed',
    phase: isSent ? 'unknown' : REFUSAL_KINDS.has(errorKind) ? 'refused' : 'not_sent',
    reason: errorKind,
    ...(rule === undefined ? {} : { rule }),
    ...(status === undefined ? {} : { status }),
    message:
      rule === undefined ? FAILURE_TEXTS[errorKind] : `The address is refused by the rule ${rule}. ${adviceFor(rule)}`,
  };
}

function callErrorOf(error: unknown, isSent: boolean): CallError {
  if (error instanceof CallError) return error;
  if (error instanceof WaitExpired) return new CallError('timed_out');
  if (error instanceof RefusedError) return new CallError('address_not_allowed');
  if (!isSent)
    return new CallError(UNSENT_ERROR_KINDS[error instanceof FailedError ? error.kind : ''] ?? 'connect_failed');
  return new CallError(errorCodeOf(error).startsWith('HPE_') ? headErrorKind(error) : 'closed_early');
}

/** Maps failures of name resolution and connection failures of the egress engine to the error kinds of this file. */
const UNSENT_ERROR_KINDS: Readonly<Record<string, CallErrorKind>> = {
  name_not_resolved: 'name_not_resolved',
  name_timed_out: 'name_not_resolved',
  connect_timed_out: 'connect_timed_out',
};

const headErrorKind = (error: unknown): CallErrorKind =>
  errorCodeOf(error) === 'HPE_HEADER_OVERFLOW' ? 'answer_head_too_large' : 'bad_answer';

/** The code of a Node error, or an empty string. */
export const errorCodeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';

const adviceFor = (rule: AddressRule): string =>
  rule === 'own_service'
    ? 'The address belongs to this Berth service.'
    : 'The operator can allow addresses with BERTH_EGRESS_ALLOW.';
