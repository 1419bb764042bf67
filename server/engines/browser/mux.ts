// Routes messages between one browser's pipe and its channels. Each client has its own root channel
// (`Target.attachToBrowserTarget`), so ids need no rewriting and messages are forwarded unchanged. The root of the pipe
// is used only to attach and detach. Chromium's responses to messages for unknown channels arrive there without a
// channel id.

import { randomInt } from 'node:crypto';
import type { OnFailure } from '../../kit/guard.ts';
import { type JsonObject, textAt } from '../../kit/json.ts';
import type { Closeable } from '../../kit/scope.ts';
import { withTimeout } from '../../kit/wait.ts';
import {
  channelOf,
  encode,
  type IncomingMessage,
  NO_SUCH_SESSION,
  parseIncomingMessage,
  SERVER_ERROR,
  withoutChannel,
  withoutProxyHeader,
} from './messages.ts';
import { type OverridingChannel, overrideCommands } from './overrides.ts';
import { Pipe } from './pipe.ts';

const ROOT_RESPONSE_TIMEOUT_MS = 15_000;
/**
 * If this many messages from one browser could not be handled, the browser is assumed to be compromised or broken. A
 * working Chromium sends no such message.
 */
const UNREADABLE_MESSAGES_MAX = 100;
/**
 * Maximum number of open channels of one browser: those of the server and of all clients, to pages, frames and workers.
 */
const CHANNELS_MAX = 20_000;
/**
 * Ids of commands on the root of the pipe start at a random number. They therefore differ from the ids that a previous
 * server process used. Responses to the commands of that process may still arrive.
 */
const ROOT_ID_BASE_MAX = 1_000_000_000;

/** Receives the response to a command and returns the response that the client gets. */
export type OnResponse = (received: IncomingMessage) => IncomingMessage | Promise<IncomingMessage>;

/**
 * Marks commands that remain pending after a crash of their target, because they revive the page and Chromium responds
 * to them.
 */
export const keepAfterCrash: OnResponse = received => received;

export interface Channel extends OverridingChannel {
  readonly owner: ChannelOwner;
  /** Undefined for the root channel of its owner. */
  readonly parent: Channel | undefined;
  /** Unanswered commands, by id. */
  readonly pendingCommands: Map<number, OnResponse | undefined>;
  /** Additional listeners for responses, by the id of the command. */
  responseTaps?: Map<number, (received: Buffer) => void>;
}

export interface ChannelOwner {
  handleMessage(channel: Channel, message: Buffer): void;
  /**
   * Called when the browser will not respond to this command. `message` is the text of the error that is reported
   * instead.
   */
  fail(channel: Channel, id: number, message: string, onResponse: OnResponse | undefined): void;
  /** Called when all messages of one read have been delivered. */
  batchEnd(): void;
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
  readonly #pendingRootCommands = new Map<number, (received: IncomingMessage) => void>();
  readonly #failure = Promise.withResolvers<Error>();
  #lastRootCommandId = randomInt(ROOT_ID_BASE_MAX);
  /**
   * The id of the last command that the server itself sent on a client's channel. These ids are smaller than those of
   * clients, and responses to these commands are ignored.
   */
  #ownId = -ROOT_ID_BASE_MAX;
  readonly #batchOwners = new Set<ChannelOwner>();
  readonly #onUnreadable: OnFailure;
  #unreadableCount = 0;
  #isClosed = false;

  /** `onUnreadable` is called when handling a message throws. The message is dropped, and the browser keeps running. */
  constructor(fifoIn: string, fifoOut: string, onUnreadable: OnFailure) {
    this.#onUnreadable = onUnreadable;
    this.#pipe = new Pipe(fifoIn, fifoOut, {
      message: message => this.#route(message),
      oversized: (head, tail) => this.#onOversized(head, tail),
      batchEnd: () => this.#endBatch(),
      unreadable: error => this.reportUnreadable(error),
      failed: error => this.#failure.resolve(error),
    });
  }

  /**
   * Reports a message that could not be handled. After UNREADABLE_MESSAGES_MAX of them, the browser counts as failed.
   */
  reportUnreadable(error: unknown): void {
    if (++this.#unreadableCount <= UNREADABLE_MESSAGES_MAX) this.#onUnreadable(error);
    if (this.#unreadableCount === UNREADABLE_MESSAGES_MAX)
      this.#failure.resolve(new Error(`${UNREADABLE_MESSAGES_MAX} messages from the browser could not be handled`));
  }

  /** Resolves when the pipe breaks or UNREADABLE_MESSAGES_MAX is reached. */
  get failed(): Promise<Error> {
    return this.#failure.promise;
  }

  get pipe(): Pipe {
    return this.#pipe;
  }

  /** Whether the mux is closed. Commands then get no response. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Opens a channel to the browser itself. */
  async attachToBrowser(
    owner: ChannelOwner,
    beforeUse: (channelId: string) => void,
    withinMs = ROOT_RESPONSE_TIMEOUT_MS,
  ): Promise<Channel> {
    const attachResponse = await this.#sendOnRoot('Target.attachToBrowserTarget', {}, withinMs);
    const id = textAt(attachResponse, 'sessionId');
    if (!id) throw new Error('Target.attachToBrowserTarget returned no sessionId');
    beforeUse(id);
    return this.open(id, owner, undefined, undefined);
  }

  /** Detaches a root channel. This also ends everything that the channel enabled, held or intercepted. */
  async detachFromBrowser(channelId: string): Promise<void> {
    const channel = this.#channels.get(channelId);
    if (channel) this.drop(channel);
    await this.#sendOnRoot('Target.detachFromTarget', { sessionId: channelId });
  }

  open(id: string, owner: ChannelOwner, parent: Channel | undefined, targetId: string | undefined): Channel {
    if (this.#channels.size >= CHANNELS_MAX) throw new Error(`the browser has more than ${CHANNELS_MAX} channels`);
    const channel: Channel = { id, owner, parent, targetId, pendingCommands: new Map() };
    this.#channels.set(id, channel);
    return channel;
  }

  find(id: string): Channel | undefined {
    return this.#channels.get(id);
  }

  /**
   * Sends again the commands with which channels of owners other than `exceptOwner` have set overrides on this target.
   * If `name` is given, restores only that override.
   */
  restoreOverrides(targetId: string, exceptOwner: ChannelOwner, name?: string): void {
    for (const channel of this.#channels.values())
      if (channel.targetId === targetId && channel.owner !== exceptOwner)
        for (const message of overrideCommands(channel, () => --this.#ownId, name)) this.#pipe.send([message]);
  }

  /** Removes a channel and its children. Their pending commands fail with an error. */
  drop(channel: Channel): void {
    const droppedChannels = new Set([channel]);
    // A parent is listed before its children, because it was opened first.
    for (const other of this.#channels.values())
      if (other.parent && droppedChannels.has(other.parent)) droppedChannels.add(other);
    for (const droppedChannel of [...droppedChannels].reverse()) {
      this.#channels.delete(droppedChannel.id);
      this.failPending(droppedChannel, 'Target closed');
    }
  }

  /** Fails the pending commands of a crashed target, because Chromium does not respond to them. */
  onTargetCrashed(targetId: string): void {
    for (const channel of this.#channels.values())
      if (channel.targetId === targetId) this.failPending(channel, 'Target crashed', keepAfterCrash);
    this.#endBatch();
  }

  failPending(channel: Channel, message: string, keptCallback?: OnResponse): void {
    const pendingEntries = [...channel.pendingCommands].filter(
      ([, onResponse]) => keptCallback === undefined || onResponse !== keptCallback,
    );
    for (const [id] of pendingEntries) channel.pendingCommands.delete(id);
    for (const [id, onResponse] of pendingEntries) channel.owner.fail(channel, id, message, onResponse);
    this.#batchOwners.add(channel.owner);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#pipe.close();
    for (const channel of this.#channels.values()) this.failPending(channel, 'Browser closed');
    for (const onRootResponse of this.#pendingRootCommands.values())
      onRootResponse({ error: { code: SERVER_ERROR, message: 'Browser closed' } });
    this.#pendingRootCommands.clear();
    for (const channel of this.#channels.values()) this.failPending(channel, 'Browser closed');
    this.#channels.clear();
    this.#endBatch();
  }

  async #sendOnRoot(method: string, params: JsonObject, withinMs = ROOT_RESPONSE_TIMEOUT_MS): Promise<JsonObject> {
    if (this.#isClosed) throw new Error('the browser is closed');
    const id = ++this.#lastRootCommandId;
    const rootResponse = Promise.withResolvers<IncomingMessage>();
    this.#pendingRootCommands.set(id, rootResponse.resolve);
    try {
      this.#pipe.send([encode({ id, method, params })]);
      const received = await withTimeout(withinMs, `Chromium to respond to ${method}`, () => rootResponse.promise);
      if (received.error) throw new ProtocolFailure(method, received.error.code, received.error.message);
      return received.result ?? {};
    } finally {
      this.#pendingRootCommands.delete(id);
    }
  }

  #route(message: Buffer): void {
    const id = channelOf(message);
    if (id === undefined) return this.#handleRootMessage(message);
    const channel = this.#channels.get(id);
    if (!channel) return;
    this.#batchOwners.add(channel.owner);
    channel.owner.handleMessage(channel, withoutProxyHeader(message));
  }

  #handleRootMessage(message: Buffer): void {
    let parsedMessage: IncomingMessage;
    try {
      parsedMessage = parseIncomingMessage(message);
    } catch {
      return; // a fragment: a previous process has read the beginning of this message
    }
    if (typeof parsedMessage.id === 'number') this.#pendingRootCommands.get(parsedMessage.id)?.(parsedMessage);
  }

  #onOversized(head: Buffer, tail: Buffer): void {
    const id = /^\{"id":(\d+)/.exec(head.toString('latin1'))?.[1];
    const channel = this.#channels.get(channelOf(tail) ?? '');
    if (!channel || id === undefined || !channel.pendingCommands.has(Number(id))) return;
    const onResponse = channel.pendingCommands.get(Number(id));
    channel.pendingCommands.delete(Number(id));
    channel.owner.fail(
      channel,
      Number(id),
      'The response is larger than 256 MiB. Request less data at once.',
      onResponse,
    );
    this.#batchOwners.add(channel.owner);
  }

  #endBatch(): void {
    for (const owner of this.#batchOwners) owner.batchEnd();
    this.#batchOwners.clear();
  }
}

/** Returns an error response in the browser's format, as the owner of the channel receives it. */
export function errorResponse(channel: Channel | undefined, id: number, message: string, code = SERVER_ERROR): Buffer {
  const error = { code, message };
  return encode(channel?.parent ? { id, error, sessionId: channel.id } : { id, error });
}

export const noSuchSession = (id: number): Buffer =>
  encode({ id, error: { code: NO_SUCH_SESSION, message: 'Session with given id not found.' } });

/** Returns a message as the owner of the channel receives it: without `sessionId` on the owner's root channel. */
export const asSeenByOwner = (channel: Channel, message: Buffer): Buffer =>
  channel.parent ? message : withoutChannel(message);
