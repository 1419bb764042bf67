// Commands of the server's own channels and their answers: each with a name, an end and an id of its own.

import { reason } from '../../kit/fault.ts';
import type { JsonObject } from '../../kit/json.ts';
import { within } from '../../kit/wait.ts';
import { answerId, encode, type Incoming, parseEvent, parseIncoming, SERVER_ERROR } from './messages.ts';
import { type Channel, type Mux, ProtocolFailure } from './mux.ts';

export const COMMAND_MS = 15_000;

export class Asker {
  readonly #mux: Mux;
  #id = 0;

  constructor(mux: Mux) {
    this.#mux = mux;
  }

  send(channel: Channel, method: string, params: JsonObject = {}, ms = COMMAND_MS): Promise<JsonObject> {
    if (this.#mux.isClosed) throw new Error('the browser is closed');
    const id = ++this.#id;
    const answered = Promise.withResolvers<JsonObject>();
    channel.pending.set(id, answer => {
      if (answer.error) answered.reject(new ProtocolFailure(method, answer.error.code, answer.error.message));
      else answered.resolve(answer.result ?? {});
      return answer;
    });
    this.#mux.pipe.send([encode({ id, method, params, sessionId: channel.id })]);
    return within(ms, `Chromium to answer ${method}`, () => answered.promise).finally(() => channel.pending.delete(id));
  }

  /** Hands an answer to whoever asked; gives back what is an event. */
  event(channel: Channel, message: Buffer): Incoming | undefined {
    const id = answerId(message);
    if (id === undefined) return parseEvent(message);
    const onAnswer = channel.pending.get(id);
    if (!onAnswer) return undefined;
    channel.pending.delete(id);
    void onAnswer(readAnswer(id, message));
    return undefined;
  }
}

/** Whoever waits for it hears of one that cannot be read. */
function readAnswer(id: number, message: Buffer): Incoming {
  try {
    return parseIncoming(message);
  } catch (error) {
    return { id, error: { code: SERVER_ERROR, message: reason(error) } };
  }
}
