// Refusals of a create that may be admitted by another host, or later by this host. entry/http then tries another host,
// or lets the create wait in the line. A caller sees the error only if no host admits the create.
import { parseJson } from '../../kit/foreign.ts';
import { isObject } from '../../kit/json.ts';
import { type Refusal, refusal, refusalFault, refusalFrom } from '../limits/refusals.ts';

/** The header that carries the refusal, in the response to the host that passed the request on. */
export const REFUSAL_HEADER = 'x-berth-room-elsewhere';

const refusalByObject = new WeakMap<object, Refusal>();

export const refusalError = (reportedRefusal: Refusal, error: Error = refusalFault(reportedRefusal)): Error =>
  noteRefusal(reportedRefusal, error);

/** Records the refusal that an error or a result describes. */
export function noteRefusal<T extends object>(reportedRefusal: Refusal, target: T): T {
  refusalByObject.set(target, reportedRefusal);
  return target;
}

/** Returns the refusal that was recorded for an error or a result. */
export const notedRefusal = (value: unknown): Refusal | undefined =>
  typeof value === 'object' && value !== null ? refusalByObject.get(value) : undefined;

export const refusalText = (reportedRefusal: Refusal): string => JSON.stringify(reportedRefusal);

/** The refusal that is assumed for a host of the previous version, which reports only that all its slots are in use. */
const FULL_REFUSAL = refusal('host', 0, 0);

export function parseRefusal(text: string): Refusal {
  const parsedRefusal = parseJson(text);
  return (isObject(parsedRefusal) ? refusalFrom(parsedRefusal) : undefined) ?? FULL_REFUSAL;
}
