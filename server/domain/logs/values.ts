// Reads members of untrusted JSON from a browser or a client. A member that does not have the expected type counts as
// absent. Text is bounded and made well-formed.

import { boundedText } from '../../kit/foreign.ts';
import { isObject, type Json, type JsonObject } from '../../kit/json.ts';
import { SCANNED_CHARS_MAX } from './expression.ts';

/** An object from a browser or a client, whose members are not validated. */
export type UntrustedObject = { readonly [name: string]: unknown };

export const objectAt = (object: UntrustedObject | undefined, name: string): UntrustedObject | undefined => {
  const value = object?.[name];
  return isObject(value) ? value : undefined;
};

export const textAt = (object: UntrustedObject | undefined, name: string): string | undefined => {
  const value = object?.[name];
  return typeof value === 'string' ? boundedText(value, TEXT_CHARS_MAX) : undefined;
};

export const numberAt = (object: UntrustedObject | undefined, name: string): number | undefined => {
  const value = object?.[name];
  return typeof value === 'number' ? value : undefined;
};

/** Returns a copy that contains only the named members whose values are strings, numbers or booleans. */
export function plainMembers(object: UntrustedObject | undefined, names: readonly string[]): JsonObject {
  const keptMembers: Record<string, Json> = {};
  for (const name of names) {
    const value = object?.[name];
    if (typeof value === 'number' || typeof value === 'boolean') keptMembers[name] = value;
    else if (typeof value === 'string') keptMembers[name] = boundedText(value, PLAIN_CHARS_MAX);
  }
  return keptMembers;
}

const PLAIN_CHARS_MAX = 200;
/** One more than the limit for scanned expressions, so that a longer expression is recognized as too long. */
const TEXT_CHARS_MAX = SCANNED_CHARS_MAX + 1;

/** A value from a page as JSON text, limited in depth and number of members. */
export function prunedJson(value: unknown): string {
  return JSON.stringify(prune(value, VALUE_DEPTH_MAX, { remaining: VALUES_MAX })) ?? '';
}

const VALUE_DEPTH_MAX = 16;
const VALUES_MAX = 1_000;
const PRUNED_MARK = '…';

function prune(value: unknown, depth: number, budget: { remaining: number }): Json {
  if (typeof value === 'string') return boundedText(value, TEXT_CHARS_MAX);
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value;
  if (typeof value !== 'object' || depth === 0) return PRUNED_MARK;
  const prunedMembers: Array<[string, Json]> = [];
  for (const [name, member] of Object.entries(value)) {
    if (budget.remaining-- <= 0) break;
    prunedMembers.push([boundedText(name, PLAIN_CHARS_MAX), prune(member, depth - 1, budget)]);
  }
  return Array.isArray(value) ? prunedMembers.map(([, member]) => member) : Object.fromEntries(prunedMembers);
}
