// Describes what is wrong with a value, and finds fields that a schema does not define. Supports the part of JSON
// Schema that contract/ uses.
import type { TSchema } from 'typebox';
import type { Issue } from '../../../contract/common.ts';
import { isObject } from '../../kit/json.ts';

const SHOWN_CHARACTERS_MAX = 60;
const ISSUES_MAX = 20;
const UNKNOWN_FIELDS_MAX = 100;

interface Shape {
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  /** True for a secret, which no message shows. */
  readonly writeOnly?: boolean;
  readonly anyOf?: readonly Shape[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly items?: Shape;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:?\d\d)$/;

/** Returns what is wrong with the value, field by field. Empty if nothing is found. */
export const findIssues = (schema: TSchema, value: unknown): Issue[] =>
  firstOf(problems(shapeOf(schema), value, ''), ISSUES_MAX);

/** Paths of the first unknown fields: `browserSettings.viewprot`, `proxies[0].sever`. */
export const unknownFields = (schema: TSchema, value: unknown): string[] =>
  firstOf(unknownPaths(shapeOf(schema), value, ''), UNKNOWN_FIELDS_MAX);

/** Paths of all fields of a body, without indexes: `proxies.server`. */
export const fieldPaths = (schema: TSchema): string[] => [...new Set(pathsIn(shapeOf(schema), ''))];

/** The first `maxCount` items. Further items are not computed. */
function firstOf<T>(iterable: Iterable<T>, maxCount: number): T[] {
  const firstItems: T[] = [];
  for (const one of iterable) if (firstItems.push(one) >= maxCount) break;
  return firstItems;
}

/** Whether values of the schema can contain ids. */
export const hasIds = (schema: TSchema): boolean => containsIds(shapeOf(schema));

/** A copy of a valid value in which ids are in lower case. */
export const withLowerIds = (schema: TSchema, value: unknown): unknown => lowercaseIds(shapeOf(schema), value);

/** A schema is plain JSON; Shape declares the keywords that are used here. */
const shapeOf = (schema: TSchema): Shape => schema as Shape;

function* problems(shape: Shape, value: unknown, path: string): Generator<Issue> {
  if (shape.anyOf) yield* problemsOfChoice(shape, shape.anyOf, value, path);
  else if (!matchesShape(shape, value))
    yield {
      path,
      message: `is ${shape.writeOnly ? 'not in the required format' : show(value)}; expected ${expectation(shape)}`,
    };
  else if (Array.isArray(value) && shape.items)
    for (const [index, item] of value.entries()) yield* problems(shape.items, item, `${path}[${index}]`);
  else if (isObject(value)) yield* problemsOfFields(shape, value, path);
}

function* problemsOfFields(shape: Shape, value: Readonly<Record<string, unknown>>, path: string): Generator<Issue> {
  for (const name of shape.required ?? [])
    if (!Object.hasOwn(value, name)) {
      const expectedShape = shape.properties?.[name];
      yield {
        path: join(path, name),
        message: `is missing; expected ${expectedShape ? expectation(expectedShape) : 'a value'}`,
      };
    }
  for (const [name, inner] of Object.entries(shape.properties ?? {}))
    if (Object.hasOwn(value, name)) yield* problems(inner, value[name], join(path, name));
}

function* problemsOfChoice(shape: Shape, choices: readonly Shape[], value: unknown, path: string): Generator<Issue> {
  if (choices.some(choice => isEmpty(problems(choice, value, path)))) return;
  const intendedShape = intendedChoice(choices, value);
  if (intendedShape) yield* problems(intendedShape, value, path);
  else yield { path, message: `is ${show(value)}; expected ${expectation(shape)}` };
}

/**
 * The alternative that the value was intended to match: the only one of the value's type, the one with the same `type`
 * member, or the one that defines more of the value's members than any other.
 */
function intendedChoice(choices: readonly Shape[], value: unknown): Shape | undefined {
  const sameTypeChoices = choices.filter(choice => choice.anyOf === undefined && choice.type === typeOf(value));
  const sameTagChoices = sameTypeChoices.filter(
    choice =>
      isObject(value) && choice.properties?.type?.const !== undefined && choice.properties.type.const === value.type,
  );
  if (sameTagChoices.length === 1) return sameTagChoices[0];
  if (sameTypeChoices.length === 1 || !isObject(value))
    return sameTypeChoices.length === 1 ? sameTypeChoices[0] : undefined;
  const knownFieldCount = ({ properties = {} }: Shape): number =>
    Object.keys(value).filter(name => Object.hasOwn(properties, name)).length;
  const bestScore = Math.max(...sameTypeChoices.map(knownFieldCount));
  const closestChoices = sameTypeChoices.filter(choice => knownFieldCount(choice) === bestScore);
  return closestChoices.length === 1 ? closestChoices[0] : undefined;
}

function* unknownPaths(shape: Shape, value: unknown, path: string): Generator<string> {
  if (shape.anyOf) {
    const intendedShape =
      shape.anyOf.find(choice => isEmpty(problems(choice, value, path))) ?? intendedChoice(shape.anyOf, value);
    if (intendedShape) yield* unknownPaths(intendedShape, value, path);
  } else if (Array.isArray(value) && shape.items) {
    // A list that is too long is refused anyway, so only its first items are checked.
    for (const [index, item] of value.slice(0, shape.maxItems).entries())
      yield* unknownPaths(shape.items, item, `${path}[${index}]`);
  } else if (isObject(value) && shape.properties) {
    for (const [name, inner] of Object.entries(value)) {
      const fieldShape = Object.hasOwn(shape.properties, name) ? shape.properties[name] : undefined;
      if (fieldShape) yield* unknownPaths(fieldShape, inner, join(path, name));
      else yield join(path, name);
    }
  }
}

function* pathsIn({ anyOf = [], items, properties = {} }: Shape, path: string): Generator<string> {
  for (const choice of [...anyOf, ...(items ? [items] : [])]) yield* pathsIn(choice, path);
  for (const [name, inner] of Object.entries(properties)) {
    yield join(path, name);
    yield* pathsIn(inner, join(path, name));
  }
}

function containsIds({ format, anyOf = [], items, properties = {} }: Shape): boolean {
  return format === 'uuid' || [...anyOf, ...(items ? [items] : []), ...Object.values(properties)].some(containsIds);
}

function lowercaseIds(shape: Shape, value: unknown): unknown {
  if (!containsIds(shape)) return value;
  if (shape.anyOf) {
    const intendedShape = shape.anyOf.find(choice => isEmpty(problems(choice, value, '')));
    return intendedShape ? lowercaseIds(intendedShape, value) : value;
  }
  if (typeof value === 'string') return value.toLowerCase();
  const { items, properties = {} } = shape;
  if (Array.isArray(value) && items) return value.map(item => lowercaseIds(items, item));
  if (!isObject(value)) return value;
  const lowercasedEntries = Object.entries(properties).flatMap(([name, subschema]) =>
    Object.hasOwn(value, name) ? [[name, lowercaseIds(subschema, value[name])] as const] : [],
  );
  return { ...value, ...Object.fromEntries(lowercasedEntries) };
}

/** Whether the value matches the shape. Its members are not checked. */
function matchesShape(shape: Shape, value: unknown): boolean {
  if (shape.enum) return shape.enum.includes(value);
  if (shape.const !== undefined) return shape.const === value;
  if (shape.type === 'integer') return Number.isInteger(value) && isInRange(shape, value as number);
  if (shape.type === 'number') return typeof value === 'number' && isInRange(shape, value);
  if (shape.type === 'array') return Array.isArray(value) && countFits(shape.minItems, shape.maxItems, value.length);
  if (shape.type === 'string') return typeof value === 'string' && stringFits(shape, value);
  return shape.type === undefined || shape.type === typeOf(value);
}

const isInRange = ({ minimum = -Infinity, maximum = Infinity }: Shape, value: number): boolean =>
  value >= minimum && value <= maximum;

const countFits = (minCount = 0, maxCount = Infinity, count: number): boolean => count >= minCount && count <= maxCount;

const stringFits = ({ format, pattern, minLength, maxLength }: Shape, value: string): boolean =>
  countFits(minLength, maxLength, value.length) &&
  (pattern === undefined || new RegExp(pattern, 'u').test(value)) &&
  (format !== 'uuid' || UUID.test(value)) &&
  (format !== 'date-time' || (TIME.test(value) && !Number.isNaN(Date.parse(value))));

// ---- messages ------------------------------------------------------------------------------------------------------

/** A description of the expected value: `a whole number from 60 to 21600`. */
function expectation(shape: TSchema | Shape): string {
  const { type, anyOf, format, pattern, ...rest } = shape as Shape;
  if (anyOf) return [...new Set(anyOf.map(expectation))].join(' or ');
  if (rest.enum) return (rest.enum.length > 1 ? 'one of ' : '') + rest.enum.map(String).join(', ');
  if (rest.const !== undefined) return JSON.stringify(rest.const);
  if (type === 'boolean') return 'true or false';
  if (type === 'integer') return `a whole number${rangeText(rest.minimum, rest.maximum)}`;
  if (type === 'number') return `a number${rangeText(rest.minimum, rest.maximum)}`;
  if (type === 'array')
    return `a list${rangeText(rest.minItems, rest.maxItems, ' of')}${rest.maxItems ? ' entries' : ''}`;
  if (type === 'object') return 'an object';
  if (format === 'uuid') return 'a UUID';
  if (format === 'date-time') return 'a time like 2026-09-24T10:15:30.123Z';
  if (pattern) return `a string matching ${pattern}`;
  return `a string${rangeText(rest.minLength, rest.maxLength, ' of')}${rest.maxLength ? ' characters' : ''}`;
}

function rangeText(lower: number | undefined, upper: number | undefined, unit = ''): string {
  if (lower !== undefined && upper === Number.MAX_SAFE_INTEGER) return `${unit} from ${lower}`;
  if (lower !== undefined && upper !== undefined)
    return unit ? `${unit} ${lower} to ${upper}` : ` from ${lower} to ${upper}`;
  if (upper !== undefined) return `${unit} at most ${upper}`;
  return lower === undefined ? '' : `${unit} at least ${lower}`;
}

function show(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (isObject(value)) return 'an object';
  const text = JSON.stringify(value) ?? 'undefined';
  return text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text;
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

const isEmpty = (generator: Generator<unknown>): boolean => generator.next().done === true;

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);
