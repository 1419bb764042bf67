// Checks the form of a JSON Schema that a caller sent: keywords of draft 2020-12 with values of the right kind, within
// bounds. The patterns in the schema are not run here.
import {
  INPUT_SCHEMA_BYTES_MAX,
  INPUT_SCHEMA_DEPTH_MAX,
  INPUT_SCHEMA_PATTERN_CHARACTERS_MAX,
} from '../../../contract/grants.ts';
import { isObject, type Json, type JsonObject } from '../../kit/json.ts';
import { fault } from '../faults.ts';

/**
 * Maximum number of schemas with which one value may have to be compared. A schema is counted once per reference to it.
 */
const SCHEMAS_MAX = 5_000;
/** Maximum depth of nested references. Thousands of levels would overflow the stack. */
const REFERENCES_MAX = 50;
const DIALECT = 'https://json-schema.org/draft/2020-12/schema';
const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'integer', 'string'];
const DEFINITION = /^#\/\$defs\/([A-Za-z0-9._-]+)$/;

type Check = (value: Json, path: string, schemas: Schemas) => void;

/**
 * Throws unless the schema is supported and within bounds.
 * @throws Fault `invalid_schema`, which names the path and what was expected.
 */
export function assertInputSchema(schema: JsonObject, path: string, bytesMax = INPUT_SCHEMA_BYTES_MAX): void {
  if (Buffer.byteLength(JSON.stringify(schema)) > bytesMax) throw invalid(path, `is larger than ${bytesMax} bytes`);
  assertStorable(schema, path, INPUT_SCHEMA_DEPTH_MAX);
  new Schemas(schema).count(schema, path);
}

/**
 * Throws for values that cannot be stored: PostgreSQL cannot store NUL or half of a surrogate pair in JSON, and JSON
 * has no infinite numbers.
 */
function assertStorable(value: Json, path: string, levels: number): void {
  if (typeof value === 'string') assertText(value, path);
  if (typeof value === 'number' && !Number.isFinite(value)) throw invalid(path, 'is too large');
  if (typeof value !== 'object' || value === null) return;
  if (levels === 0) throw invalid(path, `is nested more than ${INPUT_SCHEMA_DEPTH_MAX} levels deep`);
  for (const [name, member] of Object.entries(value)) {
    assertText(name, path);
    assertStorable(member, `${path}.${name}`, levels - 1);
  }
}

function assertText(text: string, path: string): void {
  if (text.includes('\0') || !text.isWellFormed()) throw invalid(path, 'contains a character that cannot be stored');
}

interface CountedSchema {
  readonly schemas: number;
  /** Depth of nested references below this definition, including the reference to the definition itself. */
  readonly height: number;
}

/** Counts the schemas of a document, including those that it refers to. Checks every schema while counting. */
class Schemas {
  readonly #definitions: JsonObject;
  readonly #countByName = new Map<string, CountedSchema | 'counting'>();
  #total = 0;
  /** Number of nested references that lead to the schema that is being counted. */
  #references = 0;
  /** Height of the definition that is being counted, based on what has been read so far. */
  #height = 0;

  constructor(document: JsonObject) {
    this.#definitions = isObject(document.$defs) ? document.$defs : {};
  }

  count(schema: Json, path: string): number {
    const totalBefore = this.#total;
    this.#add(1, path);
    if (typeof schema === 'boolean') return 1;
    if (!isObject(schema)) throw invalid(path, 'is not a schema; expected an object, true or false');
    for (const [keyword, value] of Object.entries(schema)) {
      const check = KEYWORDS.get(keyword);
      if (!check) throw invalid(`${path}.${keyword}`, 'is not a supported keyword');
      check(value, `${path}.${keyword}`, this);
    }
    return this.#total - totalBefore;
  }

  /** Counts the schema that a reference names. Refuses a schema that refers to itself, directly or through others. */
  refer(name: string, path: string): void {
    const knownCount = this.#countByName.get(name);
    if (knownCount === 'counting') throw invalid(path, 'refers to a schema that contains it');
    if (knownCount !== undefined) {
      this.#descend(knownCount.height, path);
      return this.#add(knownCount.schemas, path);
    }
    const definition = Object.hasOwn(this.#definitions, name) ? this.#definitions[name] : undefined;
    if (definition === undefined) throw invalid(path, `refers to ${name}, which is not in $defs`);
    const heightBefore = this.#height;
    this.#descend(1, path);
    this.#countByName.set(name, 'counting');
    this.#references += 1;
    this.#height = 0;
    const schemas = this.count(definition, path);
    const height = this.#height + 1;
    this.#references -= 1;
    this.#countByName.set(name, { schemas, height });
    this.#height = Math.max(heightBefore, height);
  }

  #descend(height: number, path: string): void {
    if (this.#references + height > REFERENCES_MAX)
      throw invalid(path, `is reached through more than ${REFERENCES_MAX} references`);
    this.#height = Math.max(this.#height, height);
  }

  #add(schemas: number, path: string): void {
    this.#total += schemas;
    if (this.#total > SCHEMAS_MAX)
      throw invalid(path, `exceeds the limit of ${SCHEMAS_MAX} schemas, including references`);
  }
}

// ---- what the values of keywords may be ----------------------------------------------------------------------------

const schema: Check = (value, path, schemas) => void schemas.count(value, path);

const schemaList: Check = (value, path, schemas) =>
  list(value, path).forEach((one, index) => void schemas.count(one, `${path}[${index}]`));

const schemaMap: Check = (value, path, schemas) => {
  for (const [name, one] of Object.entries(map(value, path))) schemas.count(one, `${path}.${name}`);
};

const patternMap: Check = (value, path, schemas) => {
  for (const name of Object.keys(map(value, path))) pattern(name, path, schemas);
  schemaMap(value, path, schemas);
};

const reference: Check = (value, path, schemas) => {
  const name = typeof value === 'string' ? DEFINITION.exec(value)?.[1] : undefined;
  if (name === undefined) throw invalid(path, 'may only refer to #/$defs/NAME');
  schemas.refer(name, path);
};

const names: Check = (value, path) => {
  const isText = list(value, path, 0).every(name => typeof name === 'string');
  if (!isText) throw invalid(path, 'is not a list of names');
};

const namesMap: Check = (value, path, schemas) => {
  for (const [name, one] of Object.entries(map(value, path))) names(one, `${path}.${name}`, schemas);
};

const types: Check = (value, path) => {
  const isKnown = (Array.isArray(value) ? list(value, path) : [value]).every(
    type => typeof type === 'string' && TYPES.includes(type),
  );
  if (!isKnown) throw invalid(path, `is not one or more of ${TYPES.join(', ')}`);
};

const number: Check = (value, path) => {
  if (typeof value !== 'number') throw invalid(path, 'is not a number');
};

const step: Check = (value, path) => {
  if (typeof value !== 'number' || value <= 0) throw invalid(path, 'is not a number greater than 0');
};

const count: Check = (value, path) => {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw invalid(path, 'is not a whole number of at least 0');
};

const flag: Check = (value, path) => {
  if (typeof value !== 'boolean') throw invalid(path, 'is neither true nor false');
};

const text: Check = (value, path) => {
  if (typeof value !== 'string') throw invalid(path, 'is not a string');
};

const values: Check = (value, path) => void list(value, path);

const acceptAnything: Check = () => {};

const dialect: Check = (value, path) => {
  if (value !== DIALECT) throw invalid(path, `is not ${DIALECT}`);
};

const pattern: Check = (value, path) => {
  if (typeof value !== 'string') throw invalid(path, 'is not a string');
  if (value.length > INPUT_SCHEMA_PATTERN_CHARACTERS_MAX)
    throw invalid(path, `is longer than ${INPUT_SCHEMA_PATTERN_CHARACTERS_MAX} characters`);
  if (!isRegularExpression(value)) throw invalid(path, 'is not a regular expression');
  if (hasLookaroundOrReference(value)) throw invalid(path, 'uses lookaround or a backreference');
};

function isRegularExpression(source: string): boolean {
  try {
    new RegExp(source, 'u');
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether a pattern has lookaround or references, so that it cannot be matched in linear time. In a character class,
 * these characters are literal.
 */
function hasLookaroundOrReference(source: string): boolean {
  const outsideClasses = source.replace(/\\[^1-9k]/g, '').replace(/\[(?:\\.|[^\]\\])*\]/g, '');
  return /\(\?<?[=!]|\\[1-9k]/.test(outsideClasses);
}

function list(value: Json, path: string, min = 1): readonly Json[] {
  if (!Array.isArray(value) || value.length < min) throw invalid(path, 'is not a list, or is empty');
  return value;
}

function map(value: Json, path: string): JsonObject {
  if (!isObject(value)) throw invalid(path, 'is not an object');
  return value;
}

const KEYWORDS: ReadonlyMap<string, Check> = new Map([
  ...checksFor(schema, 'additionalProperties', 'items', 'contains', 'not', 'if', 'then', 'else', 'propertyNames'),
  ...checksFor(schema, 'unevaluatedItems', 'unevaluatedProperties'),
  ...checksFor(schemaList, 'allOf', 'anyOf', 'oneOf', 'prefixItems'),
  ...checksFor(schemaMap, 'properties', 'dependentSchemas', '$defs'),
  ...checksFor(patternMap, 'patternProperties'),
  ...checksFor(count, 'minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'),
  ...checksFor(count, 'minContains', 'maxContains'),
  ...checksFor(number, 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'),
  ...checksFor(step, 'multipleOf'),
  ...checksFor(flag, 'uniqueItems', 'deprecated', 'readOnly', 'writeOnly'),
  ...checksFor(text, 'title', 'description', '$comment', 'format', 'contentEncoding', 'contentMediaType'),
  ...checksFor(names, 'required'),
  ...checksFor(namesMap, 'dependentRequired'),
  ...checksFor(types, 'type'),
  ...checksFor(values, 'enum', 'examples'),
  ...checksFor(acceptAnything, 'const', 'default'),
  ...checksFor(pattern, 'pattern'),
  ...checksFor(reference, '$ref'),
  ...checksFor(dialect, '$schema'),
]);

function checksFor(check: Check, ...keywords: readonly string[]): Array<[string, Check]> {
  return keywords.map(keyword => [keyword, check]);
}

const invalid = (path: string, message: string): Error =>
  fault('invalid_schema', `${path} ${message}.`, { details: { issues: [{ path, message }] } });
