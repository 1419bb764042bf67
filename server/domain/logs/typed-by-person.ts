// Removes text that a person may have typed. While a person has control in a masked hand-off, the text is removed from
// all log entries. Afterwards, it is removed from entries for requests that began during that time. The typed text may
// be in the query of an address, or in text of the page.
import type { Json, JsonObject } from '../../kit/json.ts';
import { isObject } from '../../kit/json.ts';
import { textAt, type UntrustedObject } from './values.ts';

/** Maximum number of remembered requests that began in a hand-off. */
const REMEMBERED_REQUESTS_MAX = 10_000;
const REQUEST_ID_CHARS_MAX = 200;
const ADDRESS_PATTERN = /^[a-z][a-z0-9+.-]*:/i;
const TEXT_FIELDS: ReadonlySet<string> = new Set([
  'urlFragment',
  'message',
  'text',
  'args',
  'defaultPrompt',
  'userInput',
]);
/**
 * Headers are removed, because a page may send the typed text in a header with any name, and its server may return it.
 */
const HEADER_FIELD_PATTERN = /headers$/i;

export class TypedRequests {
  readonly #ids = new Set<string>();

  /**
   * Whether the event, or the request that it belongs to, began in a masked hand-off. `isCovered` means that such a
   * hand-off is in progress.
   */
  mayContainTypedText(params: UntrustedObject, isCovered: boolean): boolean {
    const id = textAt(params, 'requestId')?.slice(0, REQUEST_ID_CHARS_MAX);
    if (isCovered && id !== undefined) this.#remember(id);
    return isCovered || (id !== undefined && this.#ids.has(id));
  }

  #remember(id: string): void {
    this.#ids.add(id);
    const [oldest] = this.#ids;
    if (this.#ids.size > REMEMBERED_REQUESTS_MAX && oldest !== undefined) this.#ids.delete(oldest);
  }
}

/** Removes the queries of addresses, all headers, and text from the page. */
export const withoutTypedText = (params: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(params).flatMap(([name, value]) => {
      if (TEXT_FIELDS.has(name)) return [];
      return [[name, HEADER_FIELD_PATTERN.test(name) ? withoutHeaders(value) : withoutQueries(value)]];
    }),
  );

const withoutHeaders = (headers: Json): Json => (Array.isArray(headers) ? [] : {});

function withoutQueries(value: Json): Json {
  if (typeof value === 'string') return ADDRESS_PATTERN.test(value) ? (value.split(/[?#]/, 1)[0] ?? '') : value;
  if (Array.isArray(value)) return value.map(withoutQueries);
  return isObject(value) ? withoutTypedText(value) : value;
}
