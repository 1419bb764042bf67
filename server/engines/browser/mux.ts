// Routes messages between one browser's pipe and the channels that speak on it. Each client has one channel of its own
// (`Target.attachToBrowserTarget`), so ids need no rewriting and a message is forwarded as the same bytes. The bare root
// of the pipe carries attach and detach only: Chromium's answers for unknown sessions arrive there without a channel.

import { randomInt } from 'node:crypto';
import type { OnFailure } from '../../kit/guard.ts';
import { type JsonObject, textAt } from '../../kit/json.ts';
import type { Closeable } from '../../kit/scope.ts';
import { within } from '../../kit/wait.ts';
import {
  channelOf,
  encode,
  type Incoming,
  NO_SUCH_SESSION,
  parseIncoming,
  SERVER_ERROR,
  withoutChannel,
  withoutProxyHeader,
} from './messages.ts';
import { type OverridingChannel, overridesAgain } from './overrides.ts';
import { Pipe } from './pipe.ts';

const ROOT_ANSWER_MS = 15_000;
/** Messages of one browser whose handling failed. Chromium itself writes none; one that writes more is not Chromium any more. */
const UNREADABLE_MAX = 100;
/** Channels of one browser at once: of the server and of all clients, to pages, frames and workers. */
const CHANNELS_MAX = 20_000;
/** Above every id of a former process whose answer may still come. */
const ROOT_ID_BASE_MAX = 1_000_000_000;

/** What happens to the answer of a command that the mux or the policy wants to see. */
export type OnAnswer = (answer: Incoming) => Incoming | Promise<Incoming>;

/** Waits on after a crash of its target: it brings the page back, and Chromium does answer it. */
export const outlivesCrash: OnAnswer = answer => answer;

export interface Channel extends OverridingChannel {
  readonly owner: ChannelOwner;
  /** The root channel of its owner has none. */
  readonly parent: Channel | undefined;
  /** Commands without an answer yet. */
  readonly pending: Map<number, OnAnswer | undefined>;
  /** Who hears the answers of commands besides their owner. */
  overheard?: Map<number, (answer: Buffer) => void>;
}

export interface ChannelOwner {
  incoming(channel: Channel, message: Buffer): void;
  /** The browser will not answer this command: the owner must hear it from us. */
  fail(channel: Channel, id: number, message: string, onAnswer: OnAnswer | undefined): void;
  /** All messages of one read were delivered. */
  rest(): void;
}

export class ProtocolFailure extends Error {
  override readonly name = 'ProtocolFailure';
  readonly code: number;
  constructor(method: string, code: number, message: string) {
    super(`${method}: ${message}`);
    this.code = code;
  }
}

export class Mux implements Closeable {
  readonly #pipe: Pipe;
  readonly #channels = new Map<string, Channel>();
  readonly #rootPending = new Map<number, (answer: Incoming) => void>();
  readonly #failed = Promise.withResolvers<Error>();
  #rootId = randomInt(ROOT_ID_BASE_MAX);
  /** Below those of every client: nobody waits for these answers. */
  #ownId = -ROOT_ID_BASE_MAX;
  readonly #touched = new Set<ChannelOwner>();
  readonly #unreadable: OnFailure;
  #lost = 0;
  #closed = false;

  /** `unreadable`: hears what the handling of a message threw; the message is lost, the browser goes on. */
  constructor(fifoIn: string, fifoOut: string, unreadable: OnFailure) {
    this.#unreadable = unreadable;
    this.#pipe = new Pipe(fifoIn, fifoOut, {
      message: message => this.#route(message),
      oversized: (head, tail) => this.#oversized(head, tail),
      rest: () => this.#rest(),
      unreadable: error => this.lost(error),
      failed: error => this.#failed.resolve(error),
    });
  }

  /** Something that the browser said could not be handled. One that goes on like this is given up. */
  lost(error: unknown): void {
    if (++this.#lost <= UNREADABLE_MAX) this.#unreadable(error);
    if (this.#lost === UNREADABLE_MAX)
      this.#failed.resolve(new Error(`${UNREADABLE_MAX} messages of the browser could not be read`));
  }

  /** Resolves when the pipe breaks. */
  get failed(): Promise<Error> {
    return this.#failed.promise;
  }

  get pipe(): Pipe {
    return this.#pipe;
  }

  /** Nothing that is said from now on would be answered. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Opens a channel to the browser itself, which answers and events then come on. */
  async attachToBrowser(
    owner: ChannelOwner,
    beforeUse: (channelId: string) => void,
    withinMs = ROOT_ANSWER_MS,
  ): Promise<Channel> {
    const result = await this.#root('Target.attachToBrowserTarget', {}, withinMs);
    const id = textAt(result, 'sessionId');
    if (!id) throw new Error('Target.attachToBrowserTarget answered without a session');
    beforeUse(id);
    return this.open(id, owner, undefined, undefined);
  }

  /** Ends a root channel at the browser; what it enabled, held or intercepted ends with it. */
  async detachFromBrowser(channelId: string): Promise<void> {
    const channel = this.#channels.get(channelId);
    if (channel) this.drop(channel);
    await this.#root('Target.detachFromTarget', { sessionId: channelId });
  }

  open(id: string, owner: ChannelOwner, parent: Channel | undefined, targetId: string | undefined): Channel {
    if (this.#channels.size >= CHANNELS_MAX) throw new Error(`the browser has opened ${CHANNELS_MAX} channels`);
    const channel: Channel = { id, owner, parent, targetId, pending: new Map() };
    this.#channels.set(id, channel);
    return channel;
  }

  find(id: string): Channel | undefined {
    return this.#channels.get(id);
  }

  /** Says again what the channels on this target, but for those of `except`, have set on it. */
  sayOverridesAgain(targetId: string, except: ChannelOwner, name?: string): void {
    for (const channel of this.#channels.values())
      if (channel.targetId === targetId && channel.owner !== except)
        for (const message of overridesAgain(channel, () => --this.#ownId, name)) this.#pipe.send([message]);
  }

  /** Forgets a channel and all below it; their pending commands are answered with an error. */
  drop(channel: Channel): void {
    const gone = new Set([channel]);
    // A channel is opened after the one above it.
    for (const other of this.#channels.values()) if (other.parent && gone.has(other.parent)) gone.add(other);
    for (const each of [...gone].reverse()) {
      this.#channels.delete(each.id);
      this.failPending(each, 'Target closed');
    }
  }

  /** A crashed target never answers: its pending commands get an error instead of silence. */
  targetCrashed(targetId: string): void {
    for (const channel of this.#channels.values())
      if (channel.targetId === targetId) this.failPending(channel, 'Target crashed', outlivesCrash);
    this.#rest();
  }

  failPending(channel: Channel, message: string, except?: OnAnswer): void {
    const pending = [...channel.pending].filter(([, onAnswer]) => except === undefined || onAnswer !== except);
    for (const [id] of pending) channel.pending.delete(id);
    for (const [id, onAnswer] of pending) channel.owner.fail(channel, id, message, onAnswer);
    this.#touched.add(channel.owner);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#pipe.close();
    for (const channel of this.#channels.values()) this.failPending(channel, 'Browser closed');
    for (const answer of this.#rootPending.values())
      answer({ error: { code: SERVER_ERROR, message: 'Browser closed' } });
    this.#rootPending.clear();
    for (const channel of this.#channels.values()) this.failPending(channel, 'Browser closed');
    this.#channels.clear();
    this.#rest();
  }

  async #root(method: string, params: JsonObject, withinMs = ROOT_ANSWER_MS): Promise<JsonObject> {
    if (this.#closed) throw new Error('the browser is closed');
    const id = ++this.#rootId;
    const answered = Promise.withResolvers<Incoming>();
    this.#rootPending.set(id, answered.resolve);
    try {
      this.#pipe.send([encode({ id, method, params })]);
      const answer = await within(withinMs, `Chromium to answer ${method}`, () => answered.promise);
      if (answer.error) throw new ProtocolFailure(method, answer.error.code, answer.error.message);
      return answer.result ?? {};
    } finally {
      this.#rootPending.delete(id);
    }
  }

  #route(message: Buffer): void {
    const id = channelOf(message);
    if (id === undefined) return this.#rootMessage(message);
    const channel = this.#channels.get(id);
    if (!channel) return;
    this.#touched.add(channel.owner);
    channel.owner.incoming(channel, withoutProxyHeader(message));
  }

  #rootMessage(message: Buffer): void {
    let parsed: Incoming;
    try {
      parsed = parseIncoming(message);
    } catch {
      return; // the rest of a message whose beginning a former process read
    }
    if (typeof parsed.id === 'number') this.#rootPending.get(parsed.id)?.(parsed);
  }

  #oversized(head: Buffer, tail: Buffer): void {
    const id = /^\{"id":(\d+)/.exec(head.toString('latin1'))?.[1];
    const channel = this.#channels.get(channelOf(tail) ?? '');
    if (!channel || id === undefined || !channel.pending.has(Number(id))) return;
    const onAnswer = channel.pending.get(Number(id));
    channel.pending.delete(Number(id));
    channel.owner.fail(channel, Number(id), 'The answer is larger than 256 MiB. Ask for less at once.', onAnswer);
    this.#touched.add(channel.owner);
  }

  #rest(): void {
    for (const owner of this.#touched) owner.rest();
    this.#touched.clear();
  }
}

/** The error answer as the browser would have written it, for the client's side of a channel. */
export function errorAnswer(channel: Channel | undefined, id: number, message: string, code = SERVER_ERROR): Buffer {
  const error = { code, message };
  return encode(channel?.parent ? { id, error, sessionId: channel.id } : { id, error });
}

export const noSuchSession = (id: number): Buffer =>
  encode({ id, error: { code: NO_SUCH_SESSION, message: 'Session with given id not found.' } });

/** A message as the owner of the channel sees it: its root channel has no name. */
export const asSeenByOwner = (channel: Channel, message: Buffer): Buffer =>
  channel.parent ? message : withoutChannel(message);
