// Creates values whose types match a schema of the contract, although other rules of the schema may refuse them.
import type { TSchema } from 'typebox';
import type { Hostile } from './hostile.ts';

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

export function plausibleBy(schema: TSchema, hostile: Hostile): unknown {
  const described: Described = schema;
  if (described.const !== undefined) return described.const;
  if (described.enum) return hostile.pick(described.enum);
  if (described.anyOf) return plausibleBy(hostile.pick(described.anyOf) ?? {}, hostile);
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
      return described.items && hostile.chance(2) ? [plausibleBy(described.items, hostile)] : [];
    case 'object':
      return objectBy(described, hostile);
    default:
      return hostile.value();
  }
}

/** An object with all required members and some of the others. */
const objectBy = ({ properties = {}, required = [] }: Described, hostile: Hostile): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(properties)
      .filter(([name]) => required.includes(name) || hostile.chance(4))
      .map(([name, schema]) => [name, plausibleBy(schema, hostile)]),
  );

/** Returns the value with one hostile member at any depth. */
export function withOneHostile(value: unknown, hostile: Hostile): unknown {
  if (typeof value !== 'object' || value === null || hostile.chance(3)) return hostile.value();
  const entries = Object.entries(value);
  const at = hostile.int(entries.length + 1);
  if (at === entries.length)
    return Array.isArray(value) ? [...value, hostile.value()] : { ...value, ...hostile.object() };
  const changed = entries.map(([name, one], n) => [name, n === at ? withOneHostile(one, hostile) : one] as const);
  return Array.isArray(value) ? changed.map(([, one]) => one) : Object.fromEntries(changed);
}
