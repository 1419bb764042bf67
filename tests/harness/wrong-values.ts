// Values that a JSON schema of the contract refuses. In each value, one field has a wrong type, is out of range, is too
// long, has a wrong format, is null, is missing or is unknown. All values except those with an unknown field are
// checked against the schema, so that none of them is valid by accident.
import type { TSchema } from 'typebox';
import { Check } from 'typebox/value';

interface Shape {
  readonly type?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Shape[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly items?: Shape;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

export interface InvalidValue {
  /** The field, in the notation of error messages: `proxies[0].server`. */
  readonly path: string;
  /** The kind of error. */
  readonly errorKind: string;
  /** The whole value, valid except for this field. */
  readonly value: unknown;
  /** Whether the only error is an unknown field. */
  readonly isExtra: boolean;
}

const UUID = '01a1fa50-5319-7450-a6b3-c787ada50631';
const TIME = '2031-01-01T00:00:00.000Z';
const EXTRA_FIELD = 'noSuchField';

/** Returns the invalid variants of a value of the schema: one for each kind of error in each field, at any depth. */
export function collectInvalidValues(schema: TSchema): InvalidValue[] {
  const shape = schema as Shape; // a TypeBox schema is a JSON Schema object
  return [...invalidValuesOf(shape, '')].filter(({ isExtra, value }) => isExtra || !Check(schema, value));
}

/** Whether the schema accepts the value. */
export const isValid = (schema: TSchema, value: unknown): boolean => Check(schema, value);

/** The smallest value that the schema accepts. */
export const validValueOf = (schema: TSchema): unknown => smallestValueOf(schema as Shape);

function smallestValueOf(shape: Shape): unknown {
  if (shape.anyOf)
    return smallestValueOf(
      shape.anyOf.find(choice => choice.type === 'object' || choice.type === 'array') ?? shape.anyOf[0] ?? {},
    );
  if (shape.enum) return shape.enum[0];
  if (shape.const !== undefined) return shape.const;
  if (shape.type === 'boolean') return true;
  if (shape.type === 'integer' || shape.type === 'number') return shape.minimum ?? 0;
  if (shape.type === 'array')
    return Array.from({ length: shape.minItems ?? 0 }, () => smallestValueOf(shape.items ?? {}));
  if (shape.type === 'string') return validTextOf(shape);
  const names = shape.required ?? [];
  return Object.fromEntries(names.map(name => [name, smallestValueOf(shape.properties?.[name] ?? {})]));
}

function validTextOf({ format, pattern, minLength = 0 }: Shape): string {
  if (format === 'uuid') return UUID;
  if (format === 'date-time') return TIME;
  return (
    ['a', '0', 'DE', 'a.test', 'http://a.test'].find(
      text => text.length >= minLength && (pattern === undefined || new RegExp(pattern, 'u').test(text)),
    ) ?? 'a'.repeat(minLength)
  );
}

function* invalidValuesOf(shape: Shape, path: string): Generator<InvalidValue> {
  for (const [errorKind, value] of ownInvalidValues(shape)) yield { path, errorKind, value, isExtra: false };
  for (const choice of shape.anyOf ?? [shape]) {
    if (choice.type === 'object' && choice.properties) yield* invalidFieldsOf(choice, path);
    if (choice.type === 'array' && choice.items)
      for (const invalidValue of invalidValuesOf(choice.items, `${path}[0]`))
        yield { ...invalidValue, value: [invalidValue.value] };
  }
}

function* invalidFieldsOf(shape: Shape, path: string): Generator<InvalidValue> {
  const { properties = {}, required = [] } = shape;
  const fullValue = Object(smallestValueOf(shape));
  yield { path: join(path, EXTRA_FIELD), errorKind: 'extra', value: { ...fullValue, [EXTRA_FIELD]: 1 }, isExtra: true };
  for (const name of required) {
    const { [name]: _, ...rest } = fullValue;
    yield { path: join(path, name), errorKind: 'missing', value: rest, isExtra: false };
  }
  for (const [name, inner] of Object.entries(properties))
    for (const invalidValue of invalidValuesOf(inner, join(path, name)))
      yield { ...invalidValue, value: { ...fullValue, [name]: invalidValue.value } };
}

/** Yields values that may be invalid as a whole, not because of one of their fields. Valid values are dropped later. */
function* ownInvalidValues(shape: Shape): Generator<readonly [how: string, value: unknown]> {
  for (const value of [null, true, 7, 1.5, '7', 'true', 'no such word', {}, []])
    yield [`type: ${JSON.stringify(value)}`, value];
  for (const choice of shape.anyOf ?? [shape]) {
    const { minimum, maximum, minLength, maxLength, minItems, maxItems, items = {} } = choice;
    if (minimum !== undefined) yield ['below the least', minimum - 1];
    if (maximum !== undefined) yield ['above the most', maximum + 1];
    if (minLength) yield ['too short', ''];
    if (maxLength !== undefined) yield ['too long', 'a'.repeat(maxLength + 1)];
    if (minItems) yield ['too few', []];
    if (maxItems !== undefined) yield ['too many', Array.from({ length: maxItems + 1 }, () => smallestValueOf(items))];
    if (choice.pattern) yield ['another form', '\u0000'];
    if (choice.format) yield ['another format', 'x'];
  }
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);
