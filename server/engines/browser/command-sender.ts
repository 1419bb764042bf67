// Sends commands on the server's own channels and matches answers to them. Every command has a time limit.

import { reason } from '../../kit/fault.ts';
import type { JsonObject } from '../../kit/json.ts';
import { within } from '../../kit/wait.ts';
import { answerId, encode, type Incoming, parseEvent, parseIncoming, SERVER_ERROR } from './messages.ts';
import { type Channel, type Mux, ProtocolFailure } from './mux.ts';

export const COMMAND_MS = 15_000;

export class CommandSender {
  readonly #mux: Mux;
  #id = 0;

  constructor(mux: Mux) {
    this.#mux = mux;
  }

  send(channel: Channel, method: string, params: JsonObject = {}, ms = COMMAND_MS): Promise<JsonObject> {
    if (this.#mux.isClosed) throw new Error('the browser is closed');
    const id = ++this.#id;
    const result = Promise.withResolvers<JsonObject>();
    channel.pending.set(id, answer => {
      if (answer.error) result.reject(new ProtocolFailure(method, answer.error.code, answer.error.message));
      else result.resolve(answer.result ?? {});
      return answer;
    });
    this.#mux.pipe.send([encode({ id, method, params, sessionId: channel.id })]);
    return within(ms, `Chromium to answer ${method}`, () => result.promise).finally(() => channel.pending.delete(id));
  }

  /** Resolves the command that a message answers. Returns the message if it is an event. */
  receive(channel: Channel, message: Buffer): Incoming | undefined {
    const id = answerId(message);
    if (id === undefined) return parseEvent(message);
    const onAnswer = channel.pending.get(id);
    if (!onAnswer) return undefined;
    channel.pending.delete(id);
    void onAnswer(readAnswer(id, message));
    return undefined;
  }
}

/** An answer that cannot be parsed becomes an error, so that the caller does not wait until the timeout. */
function readAnswer(id: number, message: Buffer): Incoming {
  try {
    return parseIncoming(message);
  } catch (error) {
    return { id, error: { code: SERVER_ERROR, message: reason(error) } };
  }
}
