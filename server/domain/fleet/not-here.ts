// A create that this host refuses, but that another host, or this one later, may admit. The entry goes on with it; a caller sees the error
// only if nobody admits it.
import { parseJson } from '../../kit/foreign.ts';
import { isObject } from '../../kit/json.ts';
import { type Refusal, refusal, refusalFault, refusalFrom } from '../limits/refusals.ts';

/** Set in the answer to the host that passed the request on: the refusal. */
export const NOT_HERE_HEADER = 'x-berth-room-elsewhere';

const noted = new WeakMap<object, Refusal>();

export const notHere = (refused: Refusal, error: Error = refusalFault(refused)): Error => noteRefused(refused, error);

/** Says of a result, too, that it describes this refusal. */
export function noteRefused<T extends object>(refused: Refusal, what: T): T {
  noted.set(what, refused);
  return what;
}

/** The refusal of an error or a result. */
export const refusedHere = (what: unknown): Refusal | undefined =>
  typeof what === 'object' && what !== null ? noted.get(what) : undefined;

export const refusalText = (refused: Refusal): string => JSON.stringify(refused);

/** Of a host of the version before, which says only that it is full. */
const FULL = refusal('host', 0, 0);

export function refusalIn(text: string): Refusal {
  const said = parseJson(text);
  return (isObject(said) ? refusalFrom(said) : undefined) ?? FULL;
}
