// Makes the HTTP request for a call from the definition of the operation and the input of the call. Pure. Credentials
// are added later.
import type { HttpBinding } from '../../../contract/configured-operations.ts';
import type { Json, JsonObject } from '../../kit/json.ts';
import { invalidRequest } from '../faults.ts';
import { headerValueProblem } from './http-headers.ts';
import { valueAt } from './json-pointer.ts';
import { expand } from './url-template.ts';

export interface PlainRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

/** Default headers, which an operation may replace. */
const DEFAULT_HEADERS = { accept: 'application/json', 'user-agent': 'Berth' };

/**
 * Returns the HTTP request.
 * @throws Fault `invalid_request` if a member of the input cannot be used. The fault names that member.
 */
export function requestOf(binding: HttpBinding, input: JsonObject): PlainRequest {
  const { method, url: template, query = {}, headers = {}, fixedHeaders = {}, body } = binding;
  const parameters = textsAt(query, input);
  const expansion = expand(
    template,
    name => scalarText(Object.hasOwn(input, name) ? input[name] : undefined, `/${name}`),
    parameters,
  );
  if ('problem' in expansion)
    throw invalidRequest([
      { path: expansion.variable === undefined ? 'input' : `input.${expansion.variable}`, message: expansion.problem },
    ]);
  const inputHeaders = textsAt(headers, input);
  for (const [name, value] of inputHeaders) {
    const problem = headerValueProblem(value);
    if (problem !== undefined) throw invalidRequest([{ path: inputPath(headers[name] ?? ''), message: problem }]);
  }
  const bodyValue = body && valueAt(input, body.from);
  return {
    ...{ method, url: expansion.url },
    headers: {
      ...omitHeaders(DEFAULT_HEADERS, [...Object.keys(fixedHeaders), ...inputHeaders.map(([name]) => name)]),
      ...(bodyValue === undefined ? {} : { 'content-type': 'application/json' }),
      ...fixedHeaders,
      ...Object.fromEntries(inputHeaders),
    },
    ...(bodyValue === undefined ? {} : { body: Buffer.from(JSON.stringify(bodyValue)) }),
  };
}

function omitHeaders(headers: Readonly<Record<string, string>>, names: readonly string[]): Record<string, string> {
  const lowerCaseNames = new Set(names.map(name => name.toLowerCase()));
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !lowerCaseNames.has(name)));
}

/** Returns the values at the pointers as strings. Absent values are omitted. */
const textsAt = (pointers: Readonly<Record<string, string>>, input: JsonObject): Array<[name: string, text: string]> =>
  Object.entries(pointers).flatMap(([name, pointer]) => {
    const text = scalarText(valueAt(input, pointer), pointer);
    return text === undefined ? [] : [[name, text]];
  });

function scalarText(value: Json | undefined, pointer: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'object')
    throw invalidRequest([
      {
        path: inputPath(pointer),
        message: 'is used in the URL or in a header; expected a string, a number, true or false',
      },
    ]);
  return String(value);
}

const inputPath = (pointer: string): string => `input${pointer.replaceAll('/', '.')}`;
