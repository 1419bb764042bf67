// Why a session is not admitted right now, and how that is said: which limit, how much of it is used, when to ask again.
import type { ErrorCode } from '../../../contract/errors.ts';
import { Fault } from '../../kit/fault.ts';
import { fault } from '../faults.ts';

/** Nobody knows when a session ends; so often it is worth asking. */
const ASK_AGAIN_SECONDS = 5;

/** `application`: its own limits; `line`: who waits for them already; `host`: the slots of this machine. */
export interface Refusal {
  readonly why: 'concurrent' | 'minute' | 'line' | 'host';
  readonly limit: number;
  readonly used: number;
  readonly retryAfterSeconds: number;
}

/** How a caller stood in line before it was refused. */
export interface Stood {
  readonly waitedMs: number;
  /** Where it stood when it left; 1 is the head. */
  readonly position: number;
  /** How many stood there then, itself included. */
  readonly waiting: number;
}

export const concurrentRefusal = (limit: number, used: number): Refusal => ({
  why: 'concurrent',
  limit,
  used,
  retryAfterSeconds: ASK_AGAIN_SECONDS,
});

export const minuteRefusal = (limit: number, used: number, retryAfterSeconds: number): Refusal => ({
  why: 'minute',
  limit,
  used,
  retryAfterSeconds,
});

export const lineRefusal = (limit: number, used: number): Refusal => ({
  why: 'line',
  limit,
  used,
  retryAfterSeconds: ASK_AGAIN_SECONDS,
});

export const hostRefusal = (slots: number, used: number): Refusal => ({
  why: 'host',
  limit: slots,
  used,
  retryAfterSeconds: ASK_AGAIN_SECONDS,
});

const SCOPES = { concurrent: 'application', minute: 'application', line: 'line', host: 'host' } as const;

const CODES = {
  concurrent: 'concurrency_limit',
  minute: 'rate_limited',
  line: 'concurrency_limit',
  host: 'capacity',
} as const;

const MESSAGES: Readonly<Record<Refusal['why'], (refusal: Refusal) => string>> = {
  concurrent: ({ limit, used }) =>
    `You have reached your max concurrent sessions limit (limit ${limit}, currently ${used}).`,
  minute: ({ limit, used }) => `You have reached your limit of creates per minute (limit ${limit}, currently ${used}).`,
  line: ({ limit, used }) => `The line of waiting creates is full (limit ${limit}, currently ${used}).`,
  host: ({ limit, used }) => `No slot is free (${used} of ${limit} in use).`,
};

const ADVICE: Readonly<Record<Refusal['why'], string>> = {
  concurrent:
    'Nothing was started. Release a session, wait for one to end, or stand in line with Prefer: wait=SECONDS.',
  minute: 'Nothing was started. Wait for the seconds in retry-after, or stand in line with Prefer: wait=SECONDS.',
  line: 'Nothing was started. Ask again in a moment.',
  host: 'Nothing was started. Wait for a session to end, or ask the operator for more slots.',
};

export class Refused extends Fault<ErrorCode> {
  readonly why: Refusal['why'];

  constructor(refusal: Refusal, stood?: Stood) {
    const { why, limit, used, retryAfterSeconds } = refusal;
    const details = { limit, used, scope: SCOPES[why], retryAfterSeconds, ...stood };
    super(CODES[why], MESSAGES[why](refusal), { advice: ADVICE[why], details });
    this.why = why;
  }
}

/** Nobody reads this: it says that nothing was done for a caller who hung up. */
export const callerLeft = (): Error => fault('capacity', 'The caller went away. Nothing was started.');
