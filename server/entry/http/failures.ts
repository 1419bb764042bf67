// Converts any thrown value into a response: status, headers and the error body. The status is looked up only here.
import type { ErrorBody } from '../../../contract/common.ts';
import { catalogueEntry, type ErrorCode, isErrorCode } from '../../../contract/errors.ts';
import { type LimitDetails, limitHeaders } from '../../../contract/limit-headers.ts';
import { errorBody } from '../../domain/error-body.ts';
import { fault } from '../../domain/faults.ts';
import { type Fault, isFault } from '../../kit/fault.ts';
import { WorkLimitReached } from '../../kit/work-limiter.ts';
import { WorkFailed, type WorkFailure } from '../../kit/worker-pool.ts';
import { BODY_BYTES_MAX } from './json-body.ts';

export interface Failure {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ErrorBody;
  /** True for a bug or an external failure, as opposed to a refusal. Logged as an error. */
  readonly isServerFailure: boolean;
}

interface Details extends LimitDetails {
  readonly waitedMs?: number;
  readonly size?: number;
  readonly acrValues?: string;
  readonly maxAge?: number;
}

export function failureOf(thrownValue: unknown, requestId: string, isWrite: boolean): Failure {
  const refusal = asFault(thrownValue);
  const code: ErrorCode = isErrorCode(refusal.code) ? refusal.code : 'internal';
  const { status, retry, retryAfterSeconds } = catalogueEntry(code);
  const details: Details = refusal.details ?? {};
  const retryAfter = details.retryAfterSeconds ?? retryAfterSeconds;
  return {
    status,
    headers: {
      ...(status === 401 ? { 'www-authenticate': challengeOf(details) } : {}),
      ...(status === 416 ? { 'content-range': `bytes */${details.size}` } : {}),
      ...(status === 426 ? { upgrade: 'websocket' } : {}),
      ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
      ...(isWrite ? { 'x-should-retry': String(retry === 'yes') } : {}),
      ...(status === 429 ? limitHeaders(details, retryAfter) : {}),
      ...(details.waitedMs === undefined ? {} : { 'x-berth-waited': String(details.waitedMs) }),
    },
    body: errorBody(status, refusal, code, requestId),
    isServerFailure: code === 'internal',
  };
}

/** The authentication challenge with the requirements for a step-up (RFC 9470). */
const challengeOf = ({ acrValues, maxAge }: { acrValues?: string; maxAge?: number }): string =>
  acrValues === undefined
    ? 'Bearer'
    : `Bearer error="insufficient_user_authentication", acr_values="${acrValues}", max_age=${maxAge}`;

/**
 * Recognizes failures caused by full queues or by limits of the worker threads, and errors of Fastify and PostgreSQL by
 * their codes. All other errors are reported as `internal`, and the log of the server contains the details.
 */
function asFault(thrownValue: unknown): Fault {
  if (isFault(thrownValue)) return thrownValue;
  if (thrownValue instanceof WorkLimitReached) return busyFault(thrownValue);
  const limitFault = thrownValue instanceof WorkFailed ? WORK_FAULTS[thrownValue.why]?.(thrownValue) : undefined;
  if (limitFault) return limitFault;
  const code = thrownValue instanceof Error && 'code' in thrownValue ? thrownValue.code : undefined;
  const frameworkFault = typeof code === 'string' ? FRAMEWORK_FAULTS[code] : undefined;
  if (frameworkFault) return frameworkFault();
  if (code === INVALID_TEXT && isFromJson(thrownValue)) return unstorableFault();
  return fault('internal', 'The service failed unexpectedly.', { advice: INTERNAL_ADVICE, cause: thrownValue });
}

const INTERNAL_ADVICE =
  'Check whether a write took effect before you send it again. Report the requestId to the operator.';

const busyFault = (cause: WorkFailed | WorkLimitReached): Fault =>
  fault('busy', 'Too many requests of this kind are waiting, or the service is stopping. The request had no effect.', {
    advice: 'Send the request again in a few seconds.',
    cause,
  });

const tooCostlyFault = (cause: WorkFailed): Fault =>
  fault('too_costly', 'The request needs more time or memory than a single request may use.', {
    advice: 'Request less data at a time, or reduce the amount of stored data.',
    cause,
  });

/**
 * Failures of the worker threads that mean that a limit was reached or the server is stopping. All others are bugs.
 */
const WORK_FAULTS: Readonly<Partial<Record<WorkFailure, (cause: WorkFailed) => Fault>>> = {
  too_many: busyFault,
  closed: busyFault,
  too_long: tooCostlyFault,
  died: tooCostlyFault,
};

const unstorableFault = (): Fault =>
  fault(
    'invalid_request',
    'A string in the request contains a NUL character or half of a surrogate pair, which cannot be stored.',
    { advice: 'Remove the character, and send the request again.' },
  );

/**
 * The code with which PostgreSQL refuses half of a surrogate pair in JSON. PostgreSQL also refuses invalid ids with
 * this code. If a query contains an invalid id, that is a bug of this server.
 */
const INVALID_TEXT = '22P02';
/** The function of PostgreSQL that reports invalid JSON: its name in version 16 and later, and in version 15. */
const JSON_ROUTINES: readonly unknown[] = ['json_errsave_error', 'json_ereport_error'];

const isFromJson = (error: unknown): boolean =>
  error instanceof Error && 'routine' in error && JSON_ROUTINES.includes(error.routine);

/** The faults for error codes of Fastify and PostgreSQL. PostgreSQL refuses NUL in text (22021) and in JSON (22P05). */
const FRAMEWORK_FAULTS: Readonly<Record<string, () => Fault>> = {
  '22021': unstorableFault,
  '22P05': unstorableFault,
  FST_ERR_CTP_BODY_TOO_LARGE: () =>
    fault('payload_too_large', `The body is too large: at most ${BODY_BYTES_MAX} bytes are accepted.`, {
      advice: 'Send a smaller body.',
      details: { limit: BODY_BYTES_MAX },
    }),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () =>
    fault('unsupported_media_type', 'The operation does not accept the content type of the body.', {
      advice: 'Send Content-Type: application/json, or multipart/form-data for an upload.',
    }),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () =>
    fault('invalid_request', 'The length of the body does not match Content-Length.', {
      advice: 'Send the complete body, and its length in bytes in Content-Length.',
    }),
  FST_ERR_BAD_URL: () =>
    fault('invalid_request', 'The path of the URL is not properly percent-encoded.', {
      advice: 'Encode a % in the path as %25.',
    }),
};
