// JSON values, and readers of members that may have any type: a member of an unexpected type counts as absent.

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const objectAt = (value: JsonObject | undefined, key: string): JsonObject | undefined => {
  const member = value?.[key];
  return isObject(member) ? member : undefined;
};

export const textAt = (value: JsonObject | undefined, key: string): string | undefined => {
  const member = value?.[key];
  return typeof member === 'string' ? member : undefined;
};
