// Reads the body of an upstream response in a worker thread: decodes it, removes secrets from it, and validates it
// against a schema. Responses are untrusted and may be large.
import { digestOf } from '../../kit/canonical-json.ts';
import { parseJson } from '../../kit/foreign.ts';
import { isObject, type Json, type JsonObject } from '../../kit/json.ts';
import { toStorable } from '../../kit/storable.ts';
import { secretRedactor } from '../../kit/without-secrets.ts';
import { matchesSchema } from './validate-job.ts';

export interface ResponseInput {
  readonly body: Uint8Array;
  readonly contentType: string;
  /** Strings that the output must not contain, however the body encodes them. */
  readonly secrets: readonly string[];
  readonly schema?: object;
}

/** `why`: the reason why the body cannot be read as JSON or text. */
export type ResponseOutput =
  | { readonly output: JsonObject; readonly digest: string; readonly isValid: boolean }
  | { readonly why: string };

const DEPTH_MAX = 64;
const VALUES_MAX = 100_000;

class UnreadableBody extends Error {}

export function work({ body, contentType, secrets, schema }: ResponseInput): ResponseOutput {
  try {
    const output = outputIn(body, contentType, secretRedactor(secrets));
    return { output, digest: digestOf(output), isValid: schema === undefined || matchesSchema(schema, output) };
  } catch (error) {
    if (error instanceof UnreadableBody) return { why: error.message };
    throw error;
  }
}

type TextCleaner = (text: string) => string;

/**
 * Returns the content of the body without secrets: a JSON object as itself, other JSON as `value`, text as `text`, and
 * an empty body as {}.
 */
function outputIn(body: Uint8Array, contentType: string, clean: TextCleaner): JsonObject {
  if (body.length === 0) return {};
  const [type = ''] = contentType.toLowerCase().split(';');
  const text = decodeBody(body);
  if (isJsonType(type.trim())) {
    const value = cleanJson(parseJson(text), clean);
    return isObject(value) ? value : { value };
  }
  if (type.trim().startsWith('text/') || type.trim() === '') return { text: toStorable(clean(text)) };
  throw new UnreadableBody('it is neither JSON nor text');
}

const isJsonType = (type: string): boolean =>
  type === 'application/json' || type.endsWith('+json') || type === 'text/json';

function decodeBody(body: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new UnreadableBody('it is not UTF-8');
  }
}

/** Removes secrets from a JSON value. `parsedValue` is undefined if the text is not JSON. */
function cleanJson(parsedValue: unknown, clean: TextCleaner): Json {
  if (parsedValue === undefined) throw new UnreadableBody('it is not valid JSON');
  let valueCount = 0;
  const walk = (value: unknown, levels: number): Json => {
    valueCount += 1;
    if (valueCount > VALUES_MAX) throw new UnreadableBody(`it has more than ${VALUES_MAX} values`);
    if (levels > DEPTH_MAX) throw new UnreadableBody(`it is nested more than ${DEPTH_MAX} levels deep`);
    if (typeof value === 'string') return toStorable(clean(value));
    if (typeof value === 'number' && !Number.isFinite(value))
      throw new UnreadableBody('it contains a number that is too large');
    if (Array.isArray(value)) return value.map(one => walk(one, levels + 1));
    if (typeof value === 'number' || typeof value === 'boolean') return value;
    if (!isObject(value)) return null;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [toStorable(clean(name)), walk(one, levels + 1)]),
    );
  };
  return walk(parsedValue, 0);
}
