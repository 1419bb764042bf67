// A create that this host refuses now, but that another host, or this host later, may admit. entry/http then tries
// another host, or lets the create wait in the line; a caller sees the error only if no host admits the create.
import { parseJson } from '../../kit/foreign.ts';
import { isObject } from '../../kit/json.ts';
import { type Refusal, refusal, refusalFault, refusalFrom } from '../limits/refusals.ts';

/** The header that carries the refusal, in the response to the host that passed the request on. */
export const REFUSAL_HEADER = 'x-berth-room-elsewhere';

const refusalByObject = new WeakMap<object, Refusal>();

export const refusalError = (refused: Refusal, error: Error = refusalFault(refused)): Error =>
  noteRefusal(refused, error);

/** Notes the refusal that an error or a result describes. */
export function noteRefusal<T extends object>(refused: Refusal, target: T): T {
  refusalByObject.set(target, refused);
  return target;
}

/** Returns the refusal that was noted for an error or a result. */
export const notedRefusal = (value: unknown): Refusal | undefined =>
  typeof value === 'object' && value !== null ? refusalByObject.get(value) : undefined;

export const refusalText = (refused: Refusal): string => JSON.stringify(refused);

/** The refusal to assume for a host of the previous version, which only reports that it is full. */
const FULL_REFUSAL = refusal('host', 0, 0);

export function refusalIn(text: string): Refusal {
  const parsedRefusal = parseJson(text);
  return (isObject(parsedRefusal) ? refusalFrom(parsedRefusal) : undefined) ?? FULL_REFUSAL;
}
