// Reads members of JSON that came from a browser or client: what is not of the expected type is not there, and text is
// bounded and well-formed.

import type { Json, JsonObject } from '../../engines/store/rows/json.ts';
import { boundedText } from '../../kit/foreign.ts';

/** An object that a browser or client said: nothing is known of its members. */
export type Said = { readonly [name: string]: unknown };

export const isObject = (value: unknown): value is Said =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const objectAt = (object: Said | undefined, name: string): Said | undefined => {
  const value = object?.[name];
  return isObject(value) ? value : undefined;
};

export const textAt = (object: Said | undefined, name: string): string | undefined => {
  const value = object?.[name];
  return typeof value === 'string' ? boundedText(value, TEXT_CHARS_MAX) : undefined;
};

export const numberAt = (object: Said | undefined, name: string): number | undefined => {
  const value = object?.[name];
  return typeof value === 'number' ? value : undefined;
};

/** Only these members, and of each only what is plain: texts, numbers, yes or no. */
export function plain(object: Said | undefined, names: readonly string[]): JsonObject {
  const kept: Record<string, Json> = {};
  for (const name of names) {
    const value = object?.[name];
    if (typeof value === 'number' || typeof value === 'boolean') kept[name] = value;
    else if (typeof value === 'string') kept[name] = boundedText(value, PLAIN_CHARS_MAX);
  }
  return kept;
}

const PLAIN_CHARS_MAX = 200;
/** More than any entry keeps, or looks at. */
const TEXT_CHARS_MAX = 64 * 1024;

/** Of a value that a page made: as JSON text, without what lies deeper or behind so much. */
export function shownJson(value: unknown): string {
  return JSON.stringify(pruned(value, VALUE_DEPTH_MAX, { left: VALUES_MAX })) ?? '';
}

const VALUE_DEPTH_MAX = 16;
const VALUES_MAX = 1_000;
const PRUNED = '…';

function pruned(value: unknown, depth: number, budget: { left: number }): Json {
  if (typeof value === 'string') return boundedText(value, TEXT_CHARS_MAX);
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value;
  if (typeof value !== 'object' || depth === 0) return PRUNED;
  const kept: Array<[string, Json]> = [];
  for (const [name, member] of Object.entries(value)) {
    if (budget.left-- <= 0) break;
    kept.push([boundedText(name, PLAIN_CHARS_MAX), pruned(member, depth - 1, budget)]);
  }
  return Array.isArray(value) ? kept.map(([, member]) => member) : Object.fromEntries(kept);
}
