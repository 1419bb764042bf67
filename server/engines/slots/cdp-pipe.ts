// A minimal CDP client over the FIFOs of a box, used only by the probe. Messages are JSON and end in NUL. All other
// code uses engines/browser.

import { constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { parseJson } from '../../kit/foreign.ts';
import { guardListener } from '../../kit/guard.ts';
import { isObject } from '../../kit/json.ts';
import { withTimeout } from '../../kit/wait.ts';

const RESPONSE_TIMEOUT_MS = 20_000;
const MESSAGE_BYTES_MAX = 16 * 1024 ** 2;

export type CdpObject = Readonly<Record<string, unknown>>;

export type CdpListener = (method: string, params: CdpObject) => void;

export class CdpPipe {
  readonly #input: Socket;
  readonly #output: Socket;
  readonly #onEvent: CdpListener;
  readonly #pendingReplies = new Map<number, PromiseWithResolvers<CdpObject>>();
  #receivedBytes = Buffer.alloc(0);
  #lastId = 0;

  constructor(fifoIn: string, fifoOut: string, onEvent: CdpListener = () => {}) {
    this.#onEvent = onEvent;
    // With O_RDWR, opening does not wait for the other end, and end-of-file is never read.
    const flags = constants.O_RDWR | constants.O_NONBLOCK;
    this.#input = new Socket({ fd: openSync(fifoIn, flags), readable: false, writable: true });
    this.#output = new Socket({ fd: openSync(fifoOut, flags), readable: true, writable: false });
    const read = (chunk: Buffer): void => this.#read(chunk);
    this.#output.on(
      'data',
      guardListener(() => this.close(), read),
    );
    for (const socket of [this.#input, this.#output]) socket.on('error', () => {});
  }

  /**
   * Calls a method and returns the `result` member of the response. Throws with the browser's message if the call
   * failed.
   */
  async call(method: string, params: CdpObject = {}, channel?: string, signal?: AbortSignal): Promise<CdpObject> {
    const id = ++this.#lastId;
    const reply = Promise.withResolvers<CdpObject>();
    this.#pendingReplies.set(id, reply);
    this.#input.write(`${JSON.stringify({ id, method, params, ...(channel ? { sessionId: channel } : {}) })}\0`);
    try {
      const { result, error } = await withTimeout(
        RESPONSE_TIMEOUT_MS,
        `the response to ${method}`,
        () => reply.promise,
        signal,
      );
      if (isObject(result)) return result;
      throw new Error(
        `${method}: ${isObject(error) ? error.message : 'the response has neither a result nor an error'}`,
      );
    } finally {
      this.#pendingReplies.delete(id);
    }
  }

  close(): void {
    for (const reply of this.#pendingReplies.values()) reply.reject(new Error('the pipe to the browser was closed'));
    this.#input.destroy();
    this.#output.destroy();
  }

  #read(chunk: Buffer): void {
    this.#receivedBytes = Buffer.concat([this.#receivedBytes, chunk]);
    for (let end = this.#receivedBytes.indexOf(0); end >= 0; end = this.#receivedBytes.indexOf(0)) {
      this.#handleMessage(this.#receivedBytes.toString('utf8', 0, end));
      this.#receivedBytes = this.#receivedBytes.subarray(end + 1);
    }
    if (this.#receivedBytes.length > MESSAGE_BYTES_MAX) this.close();
  }

  #handleMessage(text: string): void {
    const message = parseJson(text);
    if (!isObject(message)) return;
    if (typeof message.id === 'number') this.#pendingReplies.get(message.id)?.resolve(message);
    if (typeof message.method === 'string')
      this.#onEvent(message.method, isObject(message.params) ? message.params : {});
  }
}
