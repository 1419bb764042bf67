// Remembers the content types of document responses. Chromium reports a download without its type, but before that it
// reports the response that becomes the download.
import { objectAt, textAt, type UntrustedObject } from '../logs/values.ts';

/** The types of at most this many documents are kept: the most recent ones. */
const TYPES_MAX = 100;
const URL_CHARACTERS_MAX = 4096;
const TYPE_PATTERN = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/;
/** Types that servers send for unknown content, or to make the browser save the file. */
const GENERIC_TYPES = new Set([
  ...['application/octet-stream', 'binary/octet-stream', 'application/binary', 'application/unknown'],
  ...['application/download', 'application/force-download', 'application/x-download', 'application/x-force-download'],
]);

export class ResponseTypes {
  readonly #types = new Map<string, string>();

  /** Handles an event of one of Berth's channels. All events except responses for documents are ignored. */
  handleEvent(method: string, params: UntrustedObject): void {
    if (method !== 'Network.responseReceived' || params.type !== 'Document') return;
    const response = objectAt(params, 'response');
    const url = textAt(response, 'url');
    if (url === undefined || url.length > URL_CHARACTERS_MAX) return;
    this.#types.delete(url);
    const type = plausibleType(contentTypeHeader(objectAt(response, 'headers') ?? {}));
    if (type === undefined) return;
    this.#types.set(url, type);
    const [oldest] = this.#types.keys();
    if (this.#types.size > TYPES_MAX && oldest !== undefined) this.#types.delete(oldest);
  }

  /** The type of a download from this address. Undefined if its server sent no plausible type. */
  of(url: string): string | undefined {
    return this.#types.get(url);
  }
}

function contentTypeHeader(headers: UntrustedObject): string {
  const name = Object.keys(headers).find(one => one.toLowerCase() === 'content-type');
  return (name && textAt(headers, name)) ?? '';
}

function plausibleType(header: string): string | undefined {
  const type = header.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  return TYPE_PATTERN.test(type) && !GENERIC_TYPES.has(type) ? type : undefined;
}
