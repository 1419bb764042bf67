// Creates values whose types match a schema of the contract, although other rules of the schema may refuse them.
import type { TSchema } from 'typebox';
import type { HostileValues } from './hostile.ts';

interface SchemaFields {
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
  const fields: SchemaFields = schema;
  if (fields.const !== undefined) return fields.const;
  if (fields.enum) return hostile.pick(fields.enum);
  if (fields.anyOf) return plausibleValueOf(hostile.pick(fields.anyOf) ?? {}, hostile);
  switch (fields.type) {
    case 'string':
      return fields.format === 'date-time' ? '2030-01-01T00:00:00.000Z' : hostile.pick(['x', '1', 'a.test', 'de-DE']);
    case 'integer':
    case 'number':
      return Math.max(fields.minimum ?? 0, hostile.pick([0, 1, 60, 100]));
    case 'boolean':
      return hostile.chance(2);
    case 'array':
      return fields.items && hostile.chance(2) ? [plausibleValueOf(fields.items, hostile)] : [];
    case 'object':
      return plausibleObjectOf(fields, hostile);
    default:
      return hostile.value();
  }
}

/** An object with all required members and some of the optional ones. */
const plausibleObjectOf = (
  { properties = {}, required = [] }: SchemaFields,
  hostile: HostileValues,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(properties)
      .filter(([name]) => required.includes(name) || hostile.chance(4))
      .map(([name, schema]) => [name, plausibleValueOf(schema, hostile)]),
  );

/** Returns the value with one hostile member at any depth. */
export function withHostileMember(value: unknown, hostile: HostileValues): unknown {
  if (typeof value !== 'object' || value === null || hostile.chance(3)) return hostile.value();
  const entries = Object.entries(value);
  const at = hostile.int(entries.length + 1);
  if (at === entries.length)
    return Array.isArray(value) ? [...value, hostile.value()] : { ...value, ...hostile.object() };
  const changedEntries = entries.map(
    ([name, one], n) => [name, n === at ? withHostileMember(one, hostile) : one] as const,
  );
  return Array.isArray(value) ? changedEntries.map(([, one]) => one) : Object.fromEntries(changedEntries);
}
