/** All members of `T`. An optional one may be undefined, but not missing. */
export type Complete<T> = {
  readonly [Name in keyof Required<T>]: T[Name] | (object extends Pick<T, Name> ? undefined : never);
};

/**
 * Leaves out the members that are undefined. An object that is written as the argument does not compile if it lacks a
 * member of `T`, even an optional one.
 */
export const withoutUndefined = <T extends object>(members: Complete<T>): T =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
