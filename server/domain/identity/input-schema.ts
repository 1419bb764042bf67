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
const SUPPORTED_DIALECT = 'https://json-schema.org/draft/2020-12/schema';
const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'integer', 'string'];
const DEFINITION_REFERENCE_PATTERN = /^#\/\$defs\/([A-Za-z0-9._-]+)$/;

type Check = (value: Json, path: string, schemas: SchemaCounter) => void;

/**
 * Throws unless the schema is supported and within bounds.
 * @throws Fault `invalid_schema` with the path and the problem.
 */
export function assertInputSchema(schema: JsonObject, path: string, bytesMax = INPUT_SCHEMA_BYTES_MAX): void {
  if (Buffer.byteLength(JSON.stringify(schema)) > bytesMax)
    throw invalidSchema(path, `is larger than ${bytesMax} bytes`);
  assertStorable(schema, path, INPUT_SCHEMA_DEPTH_MAX);
  new SchemaCounter(schema).count(schema, path);
}

/**
 * Throws for values that cannot be stored: PostgreSQL cannot store NUL or a lone surrogate in JSON, and JSON has no
 * infinite numbers.
 */
function assertStorable(value: Json, path: string, levels: number): void {
  if (typeof value === 'string') assertText(value, path);
  if (typeof value === 'number' && !Number.isFinite(value)) throw invalidSchema(path, 'is a number that is too large');
  if (typeof value !== 'object' || value === null) return;
  if (levels === 0) throw invalidSchema(path, `is nested more than ${INPUT_SCHEMA_DEPTH_MAX} levels deep`);
  for (const [name, member] of Object.entries(value)) {
    assertText(name, path);
    assertStorable(member, `${path}.${name}`, levels - 1);
  }
}

function assertText(text: string, path: string): void {
  if (text.includes('\0') || !text.isWellFormed())
    throw invalidSchema(path, 'contains a character that cannot be stored: NUL or half of a surrogate pair');
}

interface CountedSchema {
  readonly schemas: number;
  /** Depth of nested references below this definition, including the reference to the definition itself. */
  readonly height: number;
}

/** Counts the schemas of a document, including those that it refers to. Checks every schema while counting. */
class SchemaCounter {
  readonly #definitions: JsonObject;
  readonly #countedSchemas = new Map<string, CountedSchema | 'counting'>();
  #schemaCount = 0;
  /** Number of nested references that lead to the schema that is being counted. */
  #referenceDepth = 0;
  /** Height of the definition that is being counted, as far as it has been read. */
  #height = 0;

  constructor(document: JsonObject) {
    this.#definitions = isObject(document.$defs) ? document.$defs : {};
  }

  count(schema: Json, path: string): number {
    const totalBefore = this.#schemaCount;
    this.#add(1, path);
    if (typeof schema === 'boolean') return 1;
    if (!isObject(schema)) throw invalidSchema(path, 'is not a schema; expected an object, true or false');
    for (const [keyword, value] of Object.entries(schema)) {
      const check = KEYWORDS.get(keyword);
      if (!check) throw invalidSchema(`${path}.${keyword}`, 'is not a supported keyword');
      check(value, `${path}.${keyword}`, this);
    }
    return this.#schemaCount - totalBefore;
  }

  /** Counts the schema that a reference names. Throws if a schema refers to itself, directly or indirectly. */
  countReference(name: string, path: string): void {
    const knownSchema = this.#countedSchemas.get(name);
    if (knownSchema === 'counting') throw invalidSchema(path, 'refers to a schema that contains it');
    if (knownSchema !== undefined) {
      this.#descend(knownSchema.height, path);
      return this.#add(knownSchema.schemas, path);
    }
    const definition = Object.hasOwn(this.#definitions, name) ? this.#definitions[name] : undefined;
    if (definition === undefined) throw invalidSchema(path, `refers to ${name}, which is not in $defs`);
    const heightBefore = this.#height;
    this.#descend(1, path);
    this.#countedSchemas.set(name, 'counting');
    this.#referenceDepth += 1;
    this.#height = 0;
    const schemas = this.count(definition, path);
    const height = this.#height + 1;
    this.#referenceDepth -= 1;
    this.#countedSchemas.set(name, { schemas, height });
    this.#height = Math.max(heightBefore, height);
  }

  #descend(height: number, path: string): void {
    if (this.#referenceDepth + height > REFERENCES_MAX)
      throw invalidSchema(path, `leads to references that are nested more than ${REFERENCES_MAX} levels deep`);
    this.#height = Math.max(this.#height, height);
  }

  #add(schemaCount: number, path: string): void {
    this.#schemaCount += schemaCount;
    if (this.#schemaCount > SCHEMAS_MAX)
      throw invalidSchema(path, `exceeds the limit of ${SCHEMAS_MAX} schemas, including references`);
  }
}

// ---- checks of the values of keywords ------------------------------------------------------------------------------

const checkSchema: Check = (value, path, schemas) => void schemas.count(value, path);

const checkSchemaList: Check = (value, path, schemas) =>
  requireList(value, path).forEach((one, index) => void schemas.count(one, `${path}[${index}]`));

const checkSchemaMap: Check = (value, path, schemas) => {
  for (const [name, one] of Object.entries(requireMap(value, path))) schemas.count(one, `${path}.${name}`);
};

const checkPatternMap: Check = (value, path, schemas) => {
  for (const name of Object.keys(requireMap(value, path))) checkPattern(name, path, schemas);
  checkSchemaMap(value, path, schemas);
};

const checkReference: Check = (value, path, schemas) => {
  const name = typeof value === 'string' ? DEFINITION_REFERENCE_PATTERN.exec(value)?.[1] : undefined;
  if (name === undefined) throw invalidSchema(path, 'may only refer to #/$defs/NAME');
  schemas.countReference(name, path);
};

const checkNames: Check = (value, path) => {
  const isText = requireList(value, path, 0).every(name => typeof name === 'string');
  if (!isText) throw invalidSchema(path, 'is not a list of names');
};

const checkNamesMap: Check = (value, path, schemas) => {
  for (const [name, one] of Object.entries(requireMap(value, path))) checkNames(one, `${path}.${name}`, schemas);
};

const checkTypes: Check = (value, path) => {
  const isKnown = (Array.isArray(value) ? requireList(value, path) : [value]).every(
    type => typeof type === 'string' && TYPES.includes(type),
  );
  if (!isKnown) throw invalidSchema(path, `must be one or more of ${TYPES.join(', ')}`);
};

const checkNumber: Check = (value, path) => {
  if (typeof value !== 'number') throw invalidSchema(path, 'is not a number');
};

const checkStep: Check = (value, path) => {
  if (typeof value !== 'number' || value <= 0) throw invalidSchema(path, 'is not a number greater than 0');
};

const checkCount: Check = (value, path) => {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw invalidSchema(path, 'is not a whole number of at least 0');
};

const checkFlag: Check = (value, path) => {
  if (typeof value !== 'boolean') throw invalidSchema(path, 'is neither true nor false');
};

const checkText: Check = (value, path) => {
  if (typeof value !== 'string') throw invalidSchema(path, 'is not a string');
};

const checkValues: Check = (value, path) => void requireList(value, path);

const acceptAnything: Check = () => {};

const checkDialect: Check = (value, path) => {
  if (value !== SUPPORTED_DIALECT) throw invalidSchema(path, `is not ${SUPPORTED_DIALECT}`);
};

const checkPattern: Check = (value, path) => {
  if (typeof value !== 'string') throw invalidSchema(path, 'is not a string');
  if (value.length > INPUT_SCHEMA_PATTERN_CHARACTERS_MAX)
    throw invalidSchema(path, `is longer than ${INPUT_SCHEMA_PATTERN_CHARACTERS_MAX} characters`);
  if (!isRegularExpression(value)) throw invalidSchema(path, 'is not a regular expression');
  if (hasLookaroundOrReference(value))
    throw invalidSchema(path, 'uses lookaround or a backreference, which is not supported');
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
 * Whether a pattern has lookaround or backreferences, so that it cannot be matched in linear time. Character classes
 * are ignored, because the characters of these constructs are literal in them.
 */
function hasLookaroundOrReference(source: string): boolean {
  const outsideClasses = source.replace(/\\[^1-9k]/g, '').replace(/\[(?:\\.|[^\]\\])*\]/g, '');
  return /\(\?<?[=!]|\\[1-9k]/.test(outsideClasses);
}

function requireList(value: Json, path: string, min = 1): readonly Json[] {
  if (!Array.isArray(value) || value.length < min)
    throw invalidSchema(path, min > 0 ? 'is not a list, or is empty' : 'is not a list');
  return value;
}

function requireMap(value: Json, path: string): JsonObject {
  if (!isObject(value)) throw invalidSchema(path, 'is not an object');
  return value;
}

const KEYWORDS: ReadonlyMap<string, Check> = new Map([
  ...checksFor(checkSchema, 'additionalProperties', 'items', 'contains', 'not', 'if', 'then', 'else', 'propertyNames'),
  ...checksFor(checkSchema, 'unevaluatedItems', 'unevaluatedProperties'),
  ...checksFor(checkSchemaList, 'allOf', 'anyOf', 'oneOf', 'prefixItems'),
  ...checksFor(checkSchemaMap, 'properties', 'dependentSchemas', '$defs'),
  ...checksFor(checkPatternMap, 'patternProperties'),
  ...checksFor(checkCount, 'minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'),
  ...checksFor(checkCount, 'minContains', 'maxContains'),
  ...checksFor(checkNumber, 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'),
  ...checksFor(checkStep, 'multipleOf'),
  ...checksFor(checkFlag, 'uniqueItems', 'deprecated', 'readOnly', 'writeOnly'),
  ...checksFor(checkText, 'title', 'description', '$comment', 'format', 'contentEncoding', 'contentMediaType'),
  ...checksFor(checkNames, 'required'),
  ...checksFor(checkNamesMap, 'dependentRequired'),
  ...checksFor(checkTypes, 'type'),
  ...checksFor(checkValues, 'enum', 'examples'),
  ...checksFor(acceptAnything, 'const', 'default'),
  ...checksFor(checkPattern, 'pattern'),
  ...checksFor(checkReference, '$ref'),
  ...checksFor(checkDialect, '$schema'),
]);

function checksFor(check: Check, ...keywords: readonly string[]): Array<[string, Check]> {
  return keywords.map(keyword => [keyword, check]);
}

const invalidSchema = (path: string, message: string): Error =>
  fault('invalid_schema', `${path} ${message}.`, { details: { issues: [{ path, message }] } });
