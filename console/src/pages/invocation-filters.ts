// Reads the filters of the list of invocations from the address of the page, and converts them to a query for the API.
import type { ApplicationInvocationListQuery, InvocationStatus } from '../../../contract/invocations.ts';
import { earliestTimeOf, isSessionId as isUuid, readFilters, type Since } from './session-filters.ts';

export const STATUS_WORDS = {
  running: { word: 'Running', dot: 'bg-accent', ink: 'text-accent' },
  succeeded: { word: 'Succeeded', dot: 'bg-good', ink: 'text-good' },
  failed: { word: 'Failed', dot: 'bg-bad', ink: 'text-bad' },
  ambiguous: { word: 'Ambiguous', dot: 'bg-warn', ink: 'text-warn' },
  cancelled: { word: 'Cancelled', dot: 'bg-line-strong', ink: 'text-soft' },
} as const satisfies Readonly<Record<InvocationStatus, { word: string; dot: string; ink: string }>>;

const STATUSES = Object.keys(STATUS_WORDS) as InvocationStatus[]; // Object.keys() returns strings.

/** The pattern and the maximum length of an operation id, as defined in the contract. */
const OPERATION_ID = /^[a-z][a-z0-9]*([._-][a-z0-9]+)*$/;
const OPERATION_ID_CHARACTERS_MAX = 64;

export interface InvocationFilters {
  readonly state?: InvocationStatus;
  readonly operation?: string;
  /** The agent key that made the call. */
  readonly key?: string;
  readonly since?: Since;
}

export function readInvocationFilters({ state, operation, key, since }: Record<string, unknown>): InvocationFilters {
  const knownStatus = STATUSES.find(one => one === state);
  const sinceFilter = readFilters({ since });
  return {
    ...(knownStatus ? { state: knownStatus } : {}),
    ...(isOperationId(operation) ? { operation } : {}),
    ...(typeof key === 'string' && isUuid(key) ? { key } : {}),
    ...(sinceFilter.since ? { since: sinceFilter.since } : {}),
  };
}

const isOperationId = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= OPERATION_ID_CHARACTERS_MAX && OPERATION_ID.test(value);

/** Returns the query for the API. */
export const invocationQueryOf = (
  { state, operation, key, since }: InvocationFilters,
  nowMs: number,
): Omit<ApplicationInvocationListQuery, 'limit' | 'cursor'> => ({
  ...(state ? { status: state } : {}),
  ...(operation ? { operationId: operation } : {}),
  ...(key ? { keyId: key } : {}),
  ...(since ? { after: earliestTimeOf(since, nowMs) } : {}),
});
