// Database rows contain nulls, but the row types omit absent values.

export type WithoutNulls<T> = { [K in keyof T as null extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as null extends T[K] ? K : never]?: Exclude<T[K], null>;
};

/** The filter guarantees the type. */
export const withoutNulls = <T extends object>(row: T): WithoutNulls<T> =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as WithoutNulls<T>;
