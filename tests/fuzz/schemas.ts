// Creates values whose types match a schema of the contract, although other rules of the schema may refuse them.
import type { TSchema } from 'typebox';
import type { HostileValues } from './hostile.ts';

interface Described {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly TSchema[];
  readonly items?: TSchema;
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly format?: string;
}

export function plausibleValueOf(schema: TSchema, hostile: HostileValues): unknown {
  const described: Described = schema;
  if (described.const !== undefined) return described.const;
  if (described.enum) return hostile.pick(described.enum);
  if (described.anyOf) return plausibleValueOf(hostile.pick(described.anyOf) ?? {}, hostile);
  switch (described.type) {
    case 'string':
      return described.format === 'date-time'
        ? '2030-01-01T00:00:00.000Z'
        : hostile.pick(['x', '1', 'a.test', 'de-DE']);
    case 'integer':
    case 'number':
      return Math.max(described.minimum ?? 0, hostile.pick([0, 1, 60, 100]));
    case 'boolean':
      return hostile.chance(2);
    case 'array':
      return described.items && hostile.chance(2) ? [plausibleValueOf(described.items, hostile)] : [];
    case 'object':
      return plausibleObjectOf(described, hostile);
    default:
      return hostile.value();
  }
}

/** An object with all required members and some of the others. */
const plausibleObjectOf = (
  { properties = {}, required = [] }: Described,
  hostile: HostileValues,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(properties)
      .filter(([name]) => required.includes(name) || hostile.chance(4))
      .map(([name, schema]) => [name, plausibleValueOf(schema, hostile)]),
  );

/** Returns the value with one hostile member at any depth. */
export function withOneHostile(value: unknown, hostile: HostileValues): unknown {
  if (typeof value !== 'object' || value === null || hostile.chance(3)) return hostile.value();
  const entries = Object.entries(value);
  const at = hostile.int(entries.length + 1);
  if (at === entries.length)
    return Array.isArray(value) ? [...value, hostile.value()] : { ...value, ...hostile.object() };
  const changed = entries.map(([name, one], n) => [name, n === at ? withOneHostile(one, hostile) : one] as const);
  return Array.isArray(value) ? changed.map(([, one]) => one) : Object.fromEntries(changed);
}
