// Derives the outcome of an invocation from the way in which its HTTP call ended. Pure. If an effect may have happened,
// the outcome is `ambiguous`, never `failed`.
import type { InvocationError, OperationEffect } from '../../../contract/invocations.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { OutboundFailure } from './outbound.ts';

export interface FailureOutcome {
  readonly state: 'failed' | 'ambiguous';
  readonly error: InvocationError;
}

const isClientError = (status: number | undefined): boolean => status !== undefined && status >= 400 && status < 500;

/** Statuses after which the same request may get a different response later. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Returns the outcome of a call without a complete response. */
export function outcomeOfFailure(
  effect: OperationEffect,
  { phase, reason, status, message }: OutboundFailure,
): FailureOutcome {
  if (phase === 'refused')
    return failedOutcome(
      reason === 'address_not_allowed' || reason === 'not_https' ? 'address_not_allowed' : 'not_possible',
      message,
      { phase: 'before' },
    );
  if (phase === 'not_sent') return failedOutcome('upstream_failed', message, { phase: 'before', retryable: true });
  const details: JsonObject = status === undefined ? { reason } : { reason, status };
  if (isClientError(status)) return failedOutcome('upstream_failed', message, { details });
  const isTimeout = reason === 'timed_out';
  if (effect === 'read')
    return failedOutcome(isTimeout ? 'timeout' : 'upstream_failed', message, { details, retryable: true });
  return ambiguousOutcome(isTimeout ? 'timeout_ambiguous' : 'upstream_ambiguous', message, details);
}

/**
 * Returns the outcome for a response whose status does not mean success. `body` is the beginning of the response,
 * without secrets.
 */
export function outcomeOfStatus(effect: OperationEffect, status: number, body: string): FailureOutcome {
  const details: JsonObject = { status, ...(body === '' ? {} : { body }) };
  const message = `The called service responded with the status ${status}.`;
  if (isClientError(status) || effect === 'read')
    return failedOutcome('upstream_failed', message, { details, retryable: RETRYABLE_STATUSES.has(status) });
  return ambiguousOutcome('upstream_ambiguous', message, details);
}

/** Returns the outcome for a response whose status means success, but whose body cannot be read. */
export function outcomeOfUnreadable(effect: OperationEffect, status: number, why: string): FailureOutcome {
  const message = `The called service responded with the status ${status}, but the response cannot be read: ${why}.`;
  if (effect === 'read') return failedOutcome('upstream_failed', message, { details: { status } });
  return ambiguousOutcome('upstream_ambiguous', message, { status });
}

/** Returns the outcome of a call with the effect `read` whose output does not match the schema. The call has failed. */
export const outcomeOfInvalidOutput = (status: number): FailureOutcome =>
  failedOutcome(
    'output_invalid',
    'The response of the called service does not match the output schema of the operation.',
    {
      details: { status },
      phase: 'after',
    },
  );

const failedOutcome = (
  code: string,
  message: string,
  options: { phase?: InvocationError['phase']; retryable?: boolean; details?: JsonObject },
): FailureOutcome => ({ state: 'failed', error: { code, message, retryable: false, phase: 'during', ...options } });

const ambiguousOutcome = (code: string, message: string, details: JsonObject): FailureOutcome => ({
  state: 'ambiguous',
  error: {
    code,
    message: `${message} It is not known whether the call took effect.`,
    retryable: false,
    phase: 'during',
    details,
  },
});
