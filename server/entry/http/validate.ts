// Validates request parts against their schemas. Bodies are never converted; numbers in query strings are parsed first.
import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { IsDateTime, Set as setFormat } from 'typebox/format';
import type { Issue } from '../../../contract/common.ts';
import { invalidRequest } from '../../domain/faults.ts';
import { findIssues } from './schema-walk.ts';

// Refuses times that `Date` cannot read: leap seconds (RFC 3339), and times with a time zone in brackets (RFC 9557).
setFormat('date-time', text => IsDateTime(text) && !Number.isNaN(Date.parse(text)));

/**
 * Returns a function that lists what is wrong with a value. A schema is compiled when it is first used, because there
 * are hundreds of schemas, and compiling all of them at the start took a third of a server's start time.
 */
export function validatorOf(schema: TSchema): (value: unknown) => Issue[] {
  let validator: Validator | undefined;
  return value => {
    validator ??= Compile(schema);
    if (validator.Check(value)) return [];
    const issues = findIssues(schema, value);
    return issues.length > 0
      ? issues
      : [{ path: '', message: 'The request does not match the schema of the operation' }];
  };
}

/**
 * Converts query values according to their schema: digits to numbers, ids to lower case. A repeated name is refused.
 */
export function readQuery(schema: TSchema, query: unknown): Record<string, unknown> {
  const properties: Record<string, { type?: string; format?: string }> =
    'properties' in schema ? Object(schema.properties) : {};
  const values: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(Object(query))) {
    const property = properties[name];
    if (!property) continue;
    if (Array.isArray(value))
      throw invalidRequest([{ path: name, message: 'occurs more than once; send it only once' }]);
    values[name] = readValue(property, String(value));
  }
  return values;
}

function readValue({ type, format }: { type?: string; format?: string }, text: string): string | number {
  if (type === 'integer' && /^-?\d{1,15}$/.test(text)) return Number(text);
  return format === 'uuid' ? text.toLowerCase() : text;
}
