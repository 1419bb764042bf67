// Reads members of JSON that came from a browser: what is not of the expected type is not there.
import type { Json, JsonObject } from '../../engines/store/rows/json.ts';

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
  return typeof value === 'string' ? value : undefined;
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
    else if (typeof value === 'string') kept[name] = value.slice(0, PLAIN_CHARS_MAX);
  }
  return kept;
}

const PLAIN_CHARS_MAX = 200;
