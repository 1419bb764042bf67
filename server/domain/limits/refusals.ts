// Why a create is not admitted: which limit has been reached, the current use, and when to try again.
import type { ErrorCode } from '../../../contract/errors.ts';
import { Fault } from '../../kit/fault.ts';
import type { JsonObject } from '../../kit/json.ts';

/** A fixed interval, because the time at which a session ends is unknown. */
export const RETRY_AFTER_SECONDS = 5;

const REASONS = ['concurrent', 'minute', 'egress', 'line', 'host'] as const;

/**
 * Which limit has been reached: the sessions of the application, its creates per minute, its bytes per day, its queue,
 * or the slots of this host.
 */
export interface Refusal {
  readonly why: (typeof REASONS)[number];
  readonly limit: number;
  readonly used: number;
  readonly retryAfterSeconds: number;
}

/** How long a create request waited in the queue before it was refused, and at which position. */
export interface WaitDetails {
  readonly waitedMs: number;
  /** The position of the request when it left the queue; 1 is the head. */
  readonly position: number;
  /** The length of the queue when the request left it, including this request. */
  readonly waiting: number;
}

export const refusal = (
  why: Refusal['why'],
  limit: number,
  used: number,
  retryAfterSeconds = RETRY_AFTER_SECONDS,
): Refusal => ({ why, limit, used, retryAfterSeconds });

/** Reads a refusal that was stored or sent as JSON. Undefined if the object is not a refusal. */
export function refusalFrom({ why, limit, used, retryAfterSeconds }: JsonObject): Refusal | undefined {
  const knownReason = REASONS.find(reason => reason === why);
  if (!knownReason || ![limit, used, retryAfterSeconds].every(Number.isSafeInteger)) return undefined;
  return refusal(knownReason, Number(limit), Number(used), Number(retryAfterSeconds));
}

interface RefusalText {
  readonly code: ErrorCode;
  readonly scope: string;
  readonly message: (limit: number, used: number) => string;
  readonly advice: string;
  /** Replaces `advice` after the create has waited. */
  readonly adviceAfterWait?: string;
}

const REFUSAL_TEXTS: Readonly<Record<Refusal['why'], RefusalText>> = {
  concurrent: {
    code: 'concurrency_limit',
    scope: 'application',
    message: (limit, used) =>
      `You have reached your max concurrent sessions limit (limit ${limit}, currently ${used}).`,
    advice: 'No session was created. Release a session, wait for one to end, or send Prefer: wait=SECONDS.',
    adviceAfterWait: 'No session was created. Release a session, or wait for one to end.',
  },
  minute: {
    code: 'rate_limited',
    scope: 'application',
    message: (limit, used) => `You have reached your limit of creates per minute (limit ${limit}, currently ${used}).`,
    advice: 'No session was created. Wait for the number of seconds in retry-after, or send Prefer: wait=SECONDS.',
    adviceAfterWait: 'No session was created. Wait for the number of seconds in retry-after.',
  },
  egress: {
    code: 'rate_limited',
    scope: 'application',
    message: (limit, used) =>
      `You have reached your limit of network bytes per day, egressBytesPerDay (limit ${limit}, currently ${used}).`,
    advice:
      'No session was created. The count starts again at midnight UTC. An owner of the application can raise the limit.',
  },
  line: {
    code: 'concurrency_limit',
    scope: 'line',
    message: (limit, used) => `The queue of waiting creates is full (limit ${limit}, currently ${used}).`,
    advice: 'No session was created. Send the request again later.',
  },
  host: {
    code: 'capacity',
    scope: 'host',
    message: (limit, used) => `No slot is free (${used} of ${limit} in use).`,
    advice: 'No session was created. Wait for a session to end, or ask the operator for more slots.',
  },
};

export function refusalFault({ why, limit, used, retryAfterSeconds }: Refusal, waited?: WaitDetails): Fault<ErrorCode> {
  const { code, scope, message, advice, adviceAfterWait } = REFUSAL_TEXTS[why];
  return new Fault(code, message(limit, used), {
    advice: (waited && adviceAfterWait) || advice,
    details: { limit, used, scope, retryAfterSeconds, ...waited },
  });
}
