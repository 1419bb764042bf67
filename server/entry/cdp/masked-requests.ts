// Requests that pages made in a masked hand-off. Chromium keeps their bodies for each channel that followed the
// requests, so commands that read the bodies are refused even after the hand-off.

/** Events whose first parameter is the request id. */
const REQUEST_STARTED_PATTERN =
  /^\{"method":"(?:Network\.requestWillBeSent|Fetch\.requestPaused)","params":\{"requestId":"([^"]{1,200})"/;
const HEAD_BYTES = 300;
/**
 * The maximum number of recorded request ids. Once it is exceeded, the client can no longer read the body of any
 * request.
 */
const REQUEST_IDS_MAX = 10_000;

/** Commands that return the body of a request or of its response. */
const BODY_COMMANDS: ReadonlySet<string> = new Set([
  ...['Network.getRequestPostData', 'Network.getResponseBody', 'Network.searchInResponseBody'],
  ...['Network.streamResourceContent', 'Fetch.getResponseBody', 'Fetch.takeResponseBodyAsStream'],
]);

export class MaskedRequests {
  readonly #ids = new Set<string>();
  #isIncomplete = false;

  /** Must be called with every CDP event that arrives during a masked hand-off. */
  observe(event: Buffer): void {
    const id = REQUEST_STARTED_PATTERN.exec(event.toString('latin1', 0, HEAD_BYTES))?.[1];
    if (id === undefined) return;
    if (this.#ids.size < REQUEST_IDS_MAX) this.#ids.add(id);
    else this.#isIncomplete = true;
  }

  /** Whether a command with this method may read the body of a recorded request. */
  mayBeReadBy(method: string): boolean {
    return this.#ids.size > 0 && BODY_COMMANDS.has(method);
  }

  /** Why the body of this request must not be read. Undefined if it may be read. */
  refusalFor(id: unknown): string | undefined {
    if (typeof id === 'string' && this.#ids.has(id))
      return 'the request was made while a person had control in a masked hand-off';
    return this.#isIncomplete
      ? `more than ${REQUEST_IDS_MAX} requests were made in a masked hand-off, so this connection can no longer read bodies; connect again`
      : undefined;
  }
}
