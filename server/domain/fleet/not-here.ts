// A create that this host refuses, but that another host, or this one later, may admit. The entry goes on with it; a caller sees the error
// only if nobody admits it.
import { parseJson } from '../../kit/foreign.ts';
import { isObject } from '../../kit/json.ts';
import { type Refusal, refusal, refusalFault, refusalFrom } from '../limits/refusals.ts';

/** Set in the answer to the host that passed the request on: the refusal. */
export const NOT_HERE_HEADER = 'x-berth-room-elsewhere';

const noted = new WeakMap<object, Refusal>();

export function notHere(refused: Refusal, error: Error = refusalFault(refused)): Error {
  noted.set(error, refused);
  return error;
}

/** The refusal of an error that was made by `notHere`. */
export const refusedHere = (error: unknown): Refusal | undefined =>
  typeof error === 'object' && error !== null ? noted.get(error) : undefined;

export const refusalText = (refused: Refusal): string => JSON.stringify(refused);

/** Of a host of the version before, which says only that it is full. */
const FULL = refusal('host', 0, 0);

export function refusalIn(text: string): Refusal {
  const said = parseJson(text);
  return (isObject(said) ? refusalFrom(said) : undefined) ?? FULL;
}
