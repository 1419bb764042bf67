// A minimal CDP client for uses that libraries do not support: raw messages, attacks, refused upgrades and close codes.
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { WebSocket } from 'ws';
import type { ErrorBody } from '../../contract/common.ts';
import { eventually, withTimeLimit } from './until.ts';

const RESPONSE_TIMEOUT_MS = 60_000;
/** Matches the messages of errors that occur while a page is navigating or changing its process. */
const NAVIGATION_ERRORS = /navigated or closed|context was destroyed|Cannot find (default )?(execution )?context/;

export interface CdpMessage {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string };
  readonly sessionId?: string;
}

export interface Refusal {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: ErrorBody;
}

export class CdpClient {
  readonly #socket: WebSocket;
  readonly #resolvers = new Map<number, (message: CdpMessage) => void>();
  readonly #events: CdpMessage[] = [];
  readonly #listeners = new Set<(message: CdpMessage) => void>();
  readonly #closeResolvers = Promise.withResolvers<{ code: number; reason: string }>();
  #lastId = 0;

  private constructor(socket: WebSocket, read: (text: string) => CdpMessage | undefined) {
    this.#socket = socket;
    socket.on('message', data => {
      const message = read(String(data));
      if (message) this.#receive(message);
    });
    socket.on('error', () => {}); // reported by `waitForClose`
    socket.on('close', (code, reason) => {
      this.#closeResolvers.resolve({ code, reason: String(reason) });
      for (const resolveReply of this.#resolvers.values())
        resolveReply({ error: { code: 0, message: `socket closed with ${code}` } });
    });
  }

  /**
   * Connects, and rejects if the upgrade is refused. `read` parses messages; messages for which it returns undefined
   * are ignored. Without `autoPong` the client does not answer pings.
   */
  static async connect(
    url: string,
    headers: Record<string, string> = {},
    read: (text: string) => CdpMessage | undefined = JSON.parse,
    { autoPong = true } = {},
  ): Promise<CdpClient> {
    const socket = new WebSocket(url, { headers, autoPong, perMessageDeflate: false, maxPayload: 512 * 1024 ** 2 });
    const client = new CdpClient(socket, read);
    const socketOpened = new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    await withTimeLimit(`a socket to ${url} to open`, socketOpened, RESPONSE_TIMEOUT_MS);
    return client;
  }

  /** Sends a command. Resolves to its response, which may be an error. */
  ask(method: string, params: object = {}, sessionId?: string): Promise<CdpMessage> {
    return this.askRaw(id => JSON.stringify({ id, method, params, ...(sessionId ? { sessionId } : {}) }), method);
  }

  /** Sends a command. Resolves to its result, or rejects on an error. */
  async send(method: string, params: object = {}, sessionId?: string): Promise<Readonly<Record<string, unknown>>> {
    const { result, error } = await this.ask(method, params, sessionId);
    if (error) throw new Error(`${method}: ${error.message}`);
    return result ?? {};
  }

  /**
   * Sends the message that `write` returns for an id, unchanged, and waits for the response to that id or for the
   * socket to close.
   */
  async askRaw(
    write: (id: number) => string | Buffer,
    what = 'a raw message',
    withinMs = RESPONSE_TIMEOUT_MS,
  ): Promise<CdpMessage> {
    if (this.#socket.readyState === WebSocket.CLOSED) return { error: { code: 0, message: 'the socket is closed' } };
    const id = ++this.#lastId;
    const pendingReply = new Promise<CdpMessage>(resolve => this.#resolvers.set(id, resolve));
    this.#socket.send(write(id).toString());
    return withTimeLimit(`the answer to ${what}`, pendingReply, withinMs).finally(() => this.#resolvers.delete(id));
  }

  /** Sends a string as a text message, and a buffer as a binary message. */
  sendRaw(data: string | Buffer): void {
    this.#socket.send(data);
  }

  /** Sends a part of a text message, which the next `sendRaw` completes. */
  sendFragment(data: string): void {
    this.#socket.send(data, { fin: false });
  }

  /** Resolves to the first matching event with this name, whether it was already received or is received later. */
  async waitForEvent(method: string, satisfies: (event: CdpMessage) => boolean = () => true): Promise<CdpMessage> {
    const isMatch = (message: CdpMessage): boolean => message.method === method && satisfies(message);
    return this.#events.find(isMatch) ?? this.next(`the event ${method}`, isMatch);
  }

  /** Resolves to the next matching message of any kind. */
  next(what: string, isMatch: (message: CdpMessage) => boolean): Promise<CdpMessage> {
    const match = Promise.withResolvers<CdpMessage>();
    const listen = (message: CdpMessage): void => {
      if (isMatch(message)) match.resolve(message);
    };
    this.#listeners.add(listen);
    return withTimeLimit(what, match.promise, RESPONSE_TIMEOUT_MS).finally(() => this.#listeners.delete(listen));
  }

  /** Calls the listener for every message from now on. */
  onMessage(listen: (message: CdpMessage) => void): void {
    this.#listeners.add(listen);
  }

  /** All events so far. */
  get events(): readonly CdpMessage[] {
    return this.#events;
  }

  /** Attaches to the first page and returns the id of the channel. */
  async attachToPage(): Promise<string> {
    const { targetInfos } = await this.send('Target.getTargets');
    const infos = Array.isArray(targetInfos) ? targetInfos : [];
    const page = infos.find(info => info.type === 'page');
    const { sessionId } = await this.send('Target.attachToTarget', { targetId: page?.targetId, flatten: true });
    return String(sessionId);
  }

  /** Runs an expression in the page and returns its JSON value. A promise is awaited. */
  async evaluate(expression: string, sessionId: string): Promise<unknown> {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', options, sessionId);
    if (exceptionDetails) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
    return result && typeof result === 'object' && 'value' in result ? result.value : undefined;
  }

  /**
   * Navigates the page and waits until its document has loaded, which may be later than the response to the navigation.
   */
  async visit(url: string, sessionId: string): Promise<void> {
    await this.send('Page.navigate', { url }, sessionId);
    const expression = "document.readyState === 'complete' && location.href";
    // The old document may still respond.
    const look = (): Promise<unknown> => this.evaluate(expression, sessionId).catch(error => String(error));
    await eventually(`${url} to be loaded`, look, seen => seen === new URL(url).href);
  }

  /** Evaluates the expression repeatedly until its value matches, even while the page is navigating. */
  waitForValue(
    what: string,
    expression: string,
    sessionId: string,
    satisfies: (value: unknown) => boolean = Boolean,
  ): Promise<unknown> {
    const look = (): Promise<unknown> =>
      this.evaluate(expression, sessionId).catch(error => {
        if (!NAVIGATION_ERRORS.test(String(error))) throw error;
      });
    return eventually(what, look, satisfies);
  }

  /** Waits until the socket is closed, and returns the close code and the reason. */
  waitForClose(withinMs = RESPONSE_TIMEOUT_MS): Promise<{ code: number; reason: string }> {
    return withTimeLimit('the socket to close', this.#closeResolvers.promise, withinMs);
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  /** Closes the socket with a close frame. */
  async close(): Promise<void> {
    this.#socket.close();
    await this.waitForClose();
  }

  /** Stops reading, like a client that hangs. */
  stall(): void {
    this.#socket.pause();
  }

  /** Reads again after `stall`. */
  resume(): void {
    this.#socket.resume();
  }

  /** Closes the connection without a close frame. */
  cut(): void {
    this.#socket.terminate();
  }

  #receive(message: CdpMessage): void {
    for (const listen of this.#listeners) listen(message);
    if (message.id !== undefined) this.#resolvers.get(message.id)?.(message);
    else this.#events.push(message);
  }
}

/** Parses a CDP message. Undefined if the text is not a CDP message. */
export function parseMessage(text: string): CdpMessage | undefined {
  try {
    const message: unknown = JSON.parse(text);
    return typeof message === 'object' && message !== null ? message : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the HTTP response to a refused upgrade. Rejects if the upgrade is accepted. */
export function expectUpgradeRefusal(url: string, headers: Record<string, string> = {}): Promise<Refusal> {
  const socket = new WebSocket(url, { headers });
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('open', () => {
      socket.terminate();
      reject(new Error(`the upgrade of ${url} was accepted, but should have been refused`));
    });
    socket.on('unexpected-response', (_, response) => {
      text(response).then(body => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: JSON.parse(body) });
        socket.terminate();
      }, reject);
    });
  });
}
