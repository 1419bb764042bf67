// Waits until a session reaches a given status.
import { setTimeout as sleep } from 'node:timers/promises';
import { BerthError } from './berth-error.ts';
import type { Berth } from './client.ts';
import { dataOf } from './data-of.ts';
import type { components } from './generated/api.ts';

export type Session = components['schemas']['Session'];
export type SessionStatus = Session['status'];

export interface WaitOptions {
  /** Default: 60 000, one minute. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const TIMEOUT_DEFAULT_MS = 60_000;
const POLL_INTERVAL_MS = 500;

/** Resolves with the session once it has one of these statuses. Rejects if the session ended with another status. */
export async function waitFor(
  berth: Berth,
  id: string,
  status: SessionStatus | readonly SessionStatus[],
  { timeoutMs = TIMEOUT_DEFAULT_MS, signal }: WaitOptions = {},
): Promise<Session> {
  const targetStatuses = [status].flat();
  const timeoutSignal = AbortSignal.timeout(timeoutMs);
  const abortSignal = signal ? AbortSignal.any([signal, timeoutSignal]) : timeoutSignal;
  let lastStatus: SessionStatus | undefined;
  try {
    for (;;) {
      const session = await dataOf(
        berth.GET('/v1/browsers/sessions/{id}', { params: { path: { id } }, signal: abortSignal }),
      );
      lastStatus = session.status;
      if (targetStatuses.includes(lastStatus)) return session;
      if (session.endedAt !== undefined) throw unexpectedEndError(session, targetStatuses);
      await sleep(POLL_INTERVAL_MS, undefined, { signal: abortSignal });
    }
  } catch (error) {
    if (!timeoutSignal.aborted || signal?.aborted) throw error;
    throw new BerthError({
      code: 'wait_timeout',
      message: `Session ${id} was not ${targetStatuses.join(' or ')} within ${timeoutMs} ms; its last known status is ${lastStatus ?? 'not known'}.`,
      advice: 'Wait longer, with `timeoutMs`, or read the events of the session.',
    });
  }
}

const unexpectedEndError = (
  { id, status, endReason }: Session,
  expectedStatuses: readonly SessionStatus[],
): BerthError =>
  new BerthError({
    code: 'wrong_end',
    message: `Session ${id} ended with the status ${status} (${endReason ?? 'no reason'}), so it will not be ${expectedStatuses.join(' or ')}.`,
    advice: 'Read the events of the session to see who ended it and why.',
    details: { status, endReason },
  });
