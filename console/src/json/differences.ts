// Finds the differences between two JSON values, by path. Has no side effects.

export interface Difference {
  readonly path: string;
  /** The value as JSON. Absent if there was no value before. */
  readonly before?: string;
  readonly after?: string;
}

type Members = Readonly<Record<string, unknown>>;

export function differences(previousValue: unknown, nextValue: unknown, path = ''): Difference[] {
  if (canonicalJson(previousValue) === canonicalJson(nextValue)) return [];
  const [previousMembers, nextMembers] = [membersOf(previousValue), membersOf(nextValue)];
  if (!previousMembers || !nextMembers || Array.isArray(previousValue) !== Array.isArray(nextValue))
    return [{ path, ...jsonMember('before', previousValue), ...jsonMember('after', nextValue) }];
  const names = [...new Set([...Object.keys(previousMembers), ...Object.keys(nextMembers)])];
  return names.flatMap(name =>
    differences(previousMembers[name], nextMembers[name], path === '' ? name : `${path}.${name}`),
  );
}

const membersOf = (value: unknown): Members | undefined =>
  // In JSON, this can only be an object or an array.
  typeof value === 'object' && value !== null ? (value as Members) : undefined;

/** The cast restores the name of the member: TypeScript gives an object with a computed key an index signature. */
const jsonMember = <Name extends string>(name: Name, value: unknown): { readonly [N in Name]?: string } =>
  value === undefined ? {} : ({ [name]: JSON.stringify(value) } as { readonly [N in Name]: string });

/** Converts a value to JSON. Values that differ only in the order of their members give the same string. */
export const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    membersOf(part) && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(Object(part)).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  ) ?? '';
