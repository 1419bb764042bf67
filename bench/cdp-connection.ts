// The CDP client of all measurements. Sessions and browsers started by hand are measured with the same code, so that
// the client does not cause a difference.
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { withTimeout } from '../server/kit/wait.ts';

const OPEN_TIMEOUT_MS = 40_000;
const LOAD_TIMEOUT_MS = 20_000;

export interface CdpResponse {
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string };
}

export class CdpConnection {
  readonly #socket: WebSocket;
  readonly #pendingResponses = new Map<number, PromiseWithResolvers<Readonly<Record<string, unknown>>>>();
  readonly #eventWaiters = new Map<string, PromiseWithResolvers<void>>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', data => this.#receive(JSON.parse(String(data))));
    socket.on('error', () => {}); // a 'close' event follows
    socket.on('close', () => {
      for (const response of this.#pendingResponses.values()) response.reject(new Error('the socket was closed'));
    });
  }

  static async open(url: string): Promise<CdpConnection> {
    const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 0 });
    await withTimeout(OPEN_TIMEOUT_MS, 'a CDP socket to open', signal => once(socket, 'open', { signal }));
    return new CdpConnection(socket);
  }

  /**
   * A call has no time limit, because a timer would affect the measurement. Only the benchmark as a whole has a time
   * limit.
   */
  send(method: string, params: object = {}, sessionId?: string): Promise<Readonly<Record<string, unknown>>> {
    const id = ++this.#lastId;
    const response = Promise.withResolvers<Readonly<Record<string, unknown>>>();
    this.#pendingResponses.set(id, response);
    this.#socket.send(JSON.stringify(sessionId ? { id, method, params, sessionId } : { id, method, params }));
    return response.promise;
  }

  /** Attaches to the first page. */
  async attachToPage(): Promise<string> {
    const { targetInfos } = await this.send('Target.getTargets');
    const infos = Array.isArray(targetInfos) ? targetInfos : [];
    const { targetId } = infos.find(info => info.type === 'page') ?? {};
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    return String(sessionId);
  }

  /** Navigates to a URL and resolves when it has loaded. */
  async visit(url: string, page: string): Promise<void> {
    await this.send('Page.enable', {}, page);
    const loadEvent = Promise.withResolvers<void>();
    this.#eventWaiters.set('Page.loadEventFired', loadEvent);
    await this.send('Page.navigate', { url }, page);
    await withTimeout(LOAD_TIMEOUT_MS, 'a page to load', () => loadEvent.promise);
    await this.send('Page.disable', {}, page);
  }

  async evaluate(expression: string, page: string): Promise<unknown> {
    const { result } = await this.send('Runtime.evaluate', { expression, returnByValue: true }, page);
    return result && typeof result === 'object' && 'value' in result ? result.value : undefined;
  }

  /** Stops reading from the socket. */
  pause(): void {
    this.#socket.pause();
  }

  close(): void {
    this.#socket.terminate();
  }

  #receive(message: CdpResponse & { readonly id?: number; readonly method?: string }): void {
    if (message.id === undefined) return this.#eventWaiters.get(message.method ?? '')?.resolve();
    const response = this.#pendingResponses.get(message.id);
    this.#pendingResponses.delete(message.id);
    if (message.error) response?.reject(new Error(message.error.message));
    else response?.resolve(message.result ?? {});
  }
}
