import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fault } from '../../kit/fault.ts';
import type { Json, JsonObject } from '../../kit/json.ts';
import { assertInputSchema } from './input-schema.ts';

const refusalOf = (schema: JsonObject): string | undefined => {
  try {
    assertInputSchema(schema, 'input');
    return undefined;
  } catch (error) {
    assert.ok(error instanceof Fault && error.code === 'invalid_schema', String(error));
    return error.message;
  }
};

const nestedSchema = (levels: number): JsonObject =>
  levels === 0 ? {} : { properties: { a: levels === 1 ? {} : nestedSchema(levels - 1) } };

test('accepts schemas with supported JSON Schema keywords', () => {
  for (const schema of [
    {},
    { properties: { url: { pattern: '^https://shop\\.example/' } } },
    { type: 'object', required: ['a'], additionalProperties: false, properties: { a: { type: ['string', 'null'] } } },
    { $schema: 'https://json-schema.org/draft/2020-12/schema', anyOf: [true, { enum: [1, 'a', null] }] },
    { $defs: { id: { type: 'string', maxLength: 20 } }, properties: { a: { $ref: '#/$defs/id' } } },
    { patternProperties: { '^[a-z(?=)\\\\1]+$': { minimum: 0, multipleOf: 0.5 } }, dependentRequired: { a: ['b'] } },
  ] satisfies JsonObject[])
    assert.equal(refusalOf(schema), undefined, JSON.stringify(schema));
});

test('refuses schemas that are invalid, too large or too expensive to match, and reports the path', () => {
  const cases: Array<[JsonObject, RegExp]> = [
    [{ propertis: {} }, /input\.propertis is not a supported keyword/],
    [{ properties: { a: 3 } }, /input\.properties\.a is not a schema/],
    [{ properties: { a: { type: 'text' } } }, /input\.properties\.a\.type must be one or more of/],
    [{ enum: [] }, /input\.enum is not a list, or is empty/],
    [{ minLength: -1 }, /input\.minLength/],
    [{ pattern: '(' }, /input\.pattern is not a regular expression/],
    [{ pattern: 'a'.repeat(257) }, /input\.pattern is longer than 256/],
    [{ pattern: '(?=a)b' }, /input\.pattern uses lookaround/],
    [{ pattern: '(?<!a)b' }, /input\.pattern uses lookaround/],
    [{ pattern: '(a)\\1' }, /input\.pattern uses lookaround or a backreference/],
    [{ patternProperties: { '(?<n>a)\\k<n>': {} } }, /input\.patternProperties uses lookaround or a backreference/],
    [{ $ref: 'https://evil.example/schema' }, /input\.\$ref may only refer to/],
    [{ $ref: '#' }, /input\.\$ref may only refer to/],
    [{ $ref: '#/$defs/a' }, /refers to a, which is not in \$defs/],
    [{ $ref: '#/$defs/toString' }, /refers to toString, which is not in \$defs/],
    [{ $defs: { a: { items: { $ref: '#/$defs/a' } } } }, /refers to a schema that contains it/],
    [{ $dynamicRef: '#a' }, /is not a supported keyword/],
    [{ $id: 'https://a.example' }, /is not a supported keyword/],
    [{ $schema: 'http://json-schema.org/draft-04/schema#' }, /input\.\$schema is not/],
    [{ const: 'a\0b' }, /input\.const contains a character that cannot be stored/],
    [{ properties: { '\ud800': {} } }, /input\.properties contains a character/],
    [{ enum: [Number.POSITIVE_INFINITY] }, /input\.enum\.0 is a number that is too large/],
    [nestedSchema(8), /nested more than 16 levels/],
    [{ enum: Array.from({ length: 10_000 }, (_, index) => index) }, /larger than 16384 bytes/],
  ];
  for (const [schema, expected] of cases) assert.match(refusalOf(schema) ?? 'accepted', expected);
  assert.equal(refusalOf(nestedSchema(7)), undefined);
});

test('accepts chains of up to 50 references, and refuses longer chains', () => {
  const chain = (links: number): JsonObject => ({
    $ref: '#/$defs/0',
    $defs: Object.fromEntries(
      Array.from({ length: links }, (_, n) => [n, n + 1 === links ? {} : { items: { $ref: `#/$defs/${n + 1}` } }]),
    ),
  });
  assert.equal(refusalOf(chain(50)), undefined);
  for (const links of [51, 300])
    assert.match(refusalOf(chain(links)) ?? '', /references that are nested more than 50 levels deep/);
  const { $defs } = chain(60);
  const reversedReferences = Array.from({ length: 60 }, (_, n) => ({ $ref: `#/$defs/${59 - n}` }));
  assert.match(
    refusalOf({ allOf: reversedReferences, $defs: $defs ?? {} }) ?? '',
    /references that are nested more than 50 levels deep/,
  );
});

test('refuses references that expand to too many schemas', () => {
  const definitions: Record<string, Json> = { d0: { type: 'string' } };
  for (let level = 1; level <= 20; level += 1) {
    const one = { $ref: `#/$defs/d${level - 1}` };
    definitions[`d${level}`] = { allOf: [one, one] };
  }
  assert.match(
    refusalOf({ $defs: definitions, $ref: '#/$defs/d20' }) ?? 'accepted',
    /exceeds the limit of 5000 schemas/,
  );
});
