// Sends commands on the server's own channels and matches responses to them. Every command has a time limit.

import { reason } from '../../kit/fault.ts';
import type { JsonObject } from '../../kit/json.ts';
import { withTimeout } from '../../kit/wait.ts';
import {
  encode,
  type IncomingMessage,
  isLongEvent,
  parseEvent,
  parseIncomingMessage,
  responseId,
  SERVER_ERROR,
  withoutContent,
} from './messages.ts';
import { type Channel, type Mux, ProtocolFailure } from './mux.ts';

export const COMMAND_TIMEOUT_MS = 15_000;
/** Most responses are a few hundred bytes long, but a response with 3,300 cookies of 4 KB each takes 14 MB. */
const RESPONSE_BYTES_MAX = 16 * 1024 ** 2;
const RESPONSE_BYTES_MAX_BY_METHOD: ReadonlyMap<string, number> = new Map([['Page.captureScreenshot', 64 * 1024 ** 2]]);

export class CommandSender {
  readonly #mux: Mux;
  /** The maximum length of each response, by the id of the command. */
  readonly #responseBytesLimits = new Map<number, number>();
  #id = 0;

  constructor(mux: Mux) {
    this.#mux = mux;
  }

  /** Sends a command. A response that is longer than `maxBytes` is not parsed, and the returned promise is rejected. */
  send(
    channel: Channel,
    method: string,
    params: JsonObject = {},
    ms = COMMAND_TIMEOUT_MS,
    maxBytes = RESPONSE_BYTES_MAX_BY_METHOD.get(method) ?? RESPONSE_BYTES_MAX,
  ): Promise<JsonObject> {
    if (this.#mux.isClosed) throw new Error('the browser is closed');
    const id = ++this.#id;
    const pendingResponse = Promise.withResolvers<JsonObject>();
    this.#responseBytesLimits.set(id, maxBytes);
    channel.pendingCommands.set(id, received => {
      if (received.error)
        pendingResponse.reject(new ProtocolFailure(method, received.error.code, received.error.message));
      else pendingResponse.resolve(received.result ?? {});
      return received;
    });
    this.#mux.pipe.send([encode({ id, method, params, sessionId: channel.id })]);
    return withTimeout(ms, `Chromium to respond to ${method}`, () => pendingResponse.promise).finally(() => {
      channel.pendingCommands.delete(id);
      this.#responseBytesLimits.delete(id);
    });
  }

  /** Resolves the command to which a message responds. Returns the message if it is an event. */
  receive(channel: Channel, message: Buffer): IncomingMessage | undefined {
    const id = responseId(message);
    if (id === undefined) return isLongEvent(message) ? withoutContent(message) : parseEvent(message);
    const onResponse = channel.pendingCommands.get(id);
    if (!onResponse) return undefined;
    channel.pendingCommands.delete(id);
    void onResponse(readResponse(id, message, this.#responseBytesLimits.get(id) ?? RESPONSE_BYTES_MAX));
    return undefined;
  }
}

/**
 * Parses a response. If it is too long or cannot be parsed, it becomes an error, so that the caller does not wait until
 * the timeout.
 */
function readResponse(id: number, message: Buffer, maxBytes: number): IncomingMessage {
  try {
    if (message.length > maxBytes)
      throw new Error(`the response has ${message.length} bytes; at most ${maxBytes} bytes are accepted`);
    return parseIncomingMessage(message);
  } catch (error) {
    return { id, error: { code: SERVER_ERROR, message: reason(error) } };
  }
}
