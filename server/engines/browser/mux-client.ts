// One client on the mux: its channels, the commands that it may send (as decided by the policy), and the messages that
// it receives. Browser-internal targets are hidden from it. Pages that were unresponsive when it connected are withheld
// until they respond, because stock clients wait for every page before they finish connecting.

import { reason } from '../../kit/fault.ts';
import { parseJson } from '../../kit/foreign.ts';
import { isObject, type JsonObject, objectAt, textAt } from '../../kit/json.ts';
import { BadEnvelope, type Envelope, readEnvelope } from './envelope.ts';
import type { MessageWithEnvelope } from './envelope-job.ts';
import type { Holds } from './holds.ts';
import {
  channelOf,
  encode,
  INVALID_REQUEST,
  type IncomingMessage,
  isLongEvent,
  isScreencastFrame,
  isTargetEvent,
  PARSE_ERROR,
  parseEvent,
  parseIncomingMessage,
  responseId,
  SERVER_ERROR,
} from './messages.ts';
import {
  asSeenByOwner,
  type Channel,
  type ChannelOwner,
  errorResponse,
  keepAfterCrash,
  type Mux,
  noSuchSession,
  type OnResponse,
} from './mux.ts';
import { noteOverride, overrideOf } from './overrides.ts';
import { OUTGOING_WAITING_BYTES_MAX } from './pipe.ts';

/** A longer message is read in a worker thread, and refused if the policy would have to parse it. */
const LONG_MESSAGE_BYTES = 4 * 1024 ** 2;
/** Maximum number of unanswered commands on one channel. */
const PENDING_COMMANDS_MAX = 50_000;
/**
 * Maximum number of messages that are buffered for one withheld page. When the limit is exceeded, the second-oldest
 * message is dropped, because the oldest one announces the page to the client.
 */
const HELD_MESSAGES_MAX = 1_000;
const HIDDEN_TYPES: ReadonlySet<string> = new Set(['browser_ui']);
/** These commands revive a crashed page. */
const RELOAD_METHODS: ReadonlySet<string> = new Set(['Page.navigate', 'Page.reload']);
const TOO_LONG_MESSAGE = 'The response is too long. Request less data at once.';
/**
 * The refusal of a second command with the id of a pending one. The second command would replace the response handler
 * of the first, and content that this handler removes would reach the client.
 */
const ID_IN_USE_MESSAGE = 'The id belongs to a command that has not been answered yet. Use another id.';
const AUTO_ATTACH = 'Target.setAutoAttach';
const RUN_IF_WAITING = 'Runtime.runIfWaitingForDebugger';

export interface Command {
  readonly method: string;
  readonly params: JsonObject;
  /** True if the command is sent to the browser itself rather than to a target. */
  readonly isForBrowser: boolean;
}

export type Verdict =
  | { readonly pass: true; readonly onResponse?: OnResponse }
  | { readonly rewrite: JsonObject; readonly onResponse?: OnResponse }
  | { readonly respondWith: JsonObject }
  /** The command passes, and then the overrides that other clients have set with the same command are restored. */
  | { readonly restoreOthers: true }
  | { readonly refuse: string }
  /** The command waits for the verdict while later commands proceed. Deferred commands keep their order. */
  | { readonly defer: Promise<Verdict> };

export interface Policy {
  /**
   * Commands with these methods are always parsed and judged. Other commands are forwarded unchanged, unless
   * `isWatched` returns true for their method.
   */
  readonly watchedMethods: ReadonlySet<string>;
  /** Whether a method that is not in `watchedMethods` must currently be judged. */
  isWatched?(method: string): boolean;
  judge(command: Command): Verdict | Promise<Verdict>;
  /**
   * Called with each event from Chromium before it is sent to the client. Not called for target events, or for events
   * that were withheld and are sent later.
   */
  onEvent?(event: Buffer): void;
  /**
   * Returns an event as the client should currently receive it, or undefined if the client should not receive it. The
   * returned event ends with the same `sessionId`.
   */
  filterEvent?(event: Buffer): Buffer | undefined;
  /**
   * Removes and returns the events that were withheld from the client, in the form in which the client should now
   * receive them.
   */
  takeWithheld?(): readonly Buffer[];
}

export interface ClientListener {
  message(message: Buffer): void;
  /** Called when a batch of messages has been delivered, such as all messages of one read. */
  batchEnd(): void;
  /** Pauses or resumes reading from the client while a command is judged or a long message is read. */
  setPaused(isPaused: boolean): void;
  /** Called when a message of this client could not be handled. Only this client is closed. */
  failed(error: unknown): void;
  /** Reads the envelope of a long message in a worker thread. The buffer is detached in the meantime. */
  readLongMessage(message: Buffer): Promise<MessageWithEnvelope>;
  /**
   * Maximum length, in bytes, of a response to this method. The client gets an error instead of a longer response.
   * Events for which `isLongEvent` returns true are dropped. Absent for a client without such limits.
   */
  responseBytesMax?(method: string): number;
}

/**
 * A command that a client sends. `message` is valid only during the call to `onCommand`, and must be copied to be kept.
 */
export interface TappedCommand {
  readonly method: string;
  readonly message: Buffer;
  /** The ids of the command's target and of the target's parents. Empty for a command to the browser itself. */
  readonly targetIds: readonly string[];
}

/** Observes some commands and their responses. It must not throw or block. */
export interface CommandTap {
  /** The commands to observe. */
  readonly methods: ReadonlySet<string>;
  /** Returns a listener for the response. The client receives the response too. */
  onCommand(command: TappedCommand): ((received: Buffer) => void) | undefined;
}

export class MuxClient implements ChannelOwner {
  readonly #mux: Mux;
  readonly #holds: Holds;
  readonly #policy: Policy;
  readonly #listener: ClientListener;
  readonly #tap: CommandTap | undefined;
  /**
   * Maximum length of the response to each command, by channel and command id. Empty for a client without such limits.
   */
  readonly #responseBytesLimits = new Map<string, number>();
  readonly #channels = new Map<string, Channel>();
  readonly #heldMessages = new Map<string, Array<{ channel: Channel; message: Buffer }>>();
  readonly #hiddenChannelIds = new Set<string>();
  /** The client's channels to the browser itself, in addition to its root channel. */
  readonly #browserChannelIds = new Set<string>();
  readonly #queue: Buffer[] = [];
  #root: Channel | undefined;
  #rootPrefix = Buffer.alloc(0);
  #isOnPage = false;
  #isBusy = false;
  #bufferedBytes = 0;
  #ownId = 0;

  constructor(mux: Mux, holds: Holds, policy: Policy, listener: ClientListener, tap?: CommandTap) {
    this.#mux = mux;
    this.#tap = tap;
    this.#holds = holds;
    this.#policy = policy;
    this.#listener = listener;
  }

  async open(beforeUse: (channelId: string) => void): Promise<void> {
    this.#setRoot(await this.#mux.attachToBrowser(this, beforeUse));
  }

  /** Makes the client's channel to one page its root channel. The client then cannot reach the browser itself. */
  openOnPage(page: Channel): void {
    this.#isOnPage = true;
    this.#setRoot(page);
  }

  get channelId(): string | undefined {
    return this.#root?.id;
  }

  /**
   * The total size, in bytes, of the messages that are waiting for a page to respond, for an earlier command to be
   * judged, or for a long message to be read.
   */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  /** Buffers the messages of this target until `reveal`. */
  withhold(targetId: string): void {
    this.#heldMessages.set(targetId, []);
  }

  reveal(targetId: string): void {
    const bufferedMessages = this.#heldMessages.get(targetId);
    if (!bufferedMessages) return;
    this.#heldMessages.delete(targetId);
    for (const { channel, message } of bufferedMessages) {
      this.#bufferedBytes -= message.length;
      this.#listener.message(asSeenByOwner(channel, message));
    }
    this.#listener.batchEnd();
  }

  /**
   * Handles one message from the client. While a command is being judged or a long message is being read, later
   * messages wait.
   */
  receive(message: Buffer): void {
    if (this.#isBusy) {
      this.#queue.push(message);
      this.#bufferedBytes += message.length;
      return;
    }
    if (message.length > LONG_MESSAGE_BYTES) return this.#receiveLong(message);
    let envelope: Envelope;
    try {
      envelope = readEnvelope(message);
    } catch (error) {
      if (!(error instanceof BadEnvelope)) throw error;
      return this.#reply(encode({ id: error.id, error: { code: error.code, message: error.message } }));
    }
    this.#dispatch(envelope, message);
  }

  #receiveLong(message: Buffer): void {
    const messageBytes = message.length;
    this.#bufferedBytes += messageBytes;
    const readPromise = this.#listener.readLongMessage(message).finally(() => {
      this.#bufferedBytes -= messageBytes;
    });
    this.#inOrder(readPromise, ({ message: { buffer, byteOffset, byteLength }, readResult }) => {
      if ('error' in readResult)
        this.#reply(encode({ id: readResult.id, error: { code: readResult.code, message: readResult.error } }));
      else this.#dispatch(readResult, Buffer.from(buffer, byteOffset, byteLength));
    });
  }

  #dispatch(envelope: Envelope, message: Buffer): void {
    const channel = envelope.sessionId === undefined ? this.#root : this.#channels.get(envelope.sessionId);
    if (!channel) return this.#reply(noSuchSession(envelope.id));
    if (channel.pendingCommands.size >= PENDING_COMMANDS_MAX)
      return this.#refuse(
        channel,
        envelope.id,
        `This channel has ${PENDING_COMMANDS_MAX} unanswered commands, which is the limit. Wait for some of the responses.`,
      );
    if (this.#mux.pipe.waitingBytes + message.length > OUTGOING_WAITING_BYTES_MAX)
      return this.#refuse(
        channel,
        envelope.id,
        'Too many bytes are waiting to be sent to the browser. Wait for responses before you send more commands.',
      );
    if (this.#policy.watchedMethods.has(envelope.method) || this.#policy.isWatched?.(envelope.method)) {
      if (message.length > LONG_MESSAGE_BYTES)
        return this.#refuse(
          channel,
          envelope.id,
          `A ${envelope.method} command may have at most ${LONG_MESSAGE_BYTES} bytes.`,
        );
      return this.#judge(channel, envelope, message);
    }
    this.#forward(channel, envelope, message, undefined);
  }

  handleMessage(channel: Channel, message: Buffer): void {
    const id = responseId(message);
    if (id === undefined) {
      if (isLongEvent(message) && (this.#listener.responseBytesMax || isTargetEvent(message))) return;
      if (isTargetEvent(message)) return this.#onTargetEvent(channel, message);
      const visibleEvent = this.#policy.filterEvent ? this.#policy.filterEvent(message) : message;
      if (!visibleEvent) return this.#dropEvent(channel, message);
      this.#policy.onEvent?.(visibleEvent);
      return this.#deliver(channel, visibleEvent, channel.targetId);
    }
    const onResponse = channel.pendingCommands.get(id);
    if (!channel.pendingCommands.delete(id)) return;
    if (this.#isTooLong(channel, id, message)) return this.fail(channel, id, TOO_LONG_MESSAGE);
    if (channel.responseTaps) this.#tapResponse(channel, id, message);
    if (onResponse) void this.#transformResponse(channel, id, message, onResponse);
    else this.#deliver(channel, message, undefined);
  }

  #isTooLong(channel: Channel, id: number, message: Buffer): boolean {
    const key = `${channel.id} ${id}`;
    const max = this.#responseBytesLimits.get(key);
    this.#responseBytesLimits.delete(key);
    return max !== undefined && message.length > max;
  }

  /** Sends the events that were withheld from the client, if their channels are still open. */
  sendWithheld(): void {
    for (const event of this.#policy.takeWithheld?.() ?? []) {
      const channel = this.#channels.get(channelOf(event) ?? '');
      if (channel) this.#deliver(channel, event, channel.targetId);
    }
    this.#listener.batchEnd();
  }

  /** Sends one of the server's own events on every channel, because clients listen on the channel that they opened. */
  announce(method: string, params: JsonObject): void {
    for (const channel of this.#channels.values())
      this.#listener.message(encode({ method, params, ...sessionFieldOf(channel) }));
    this.#listener.batchEnd();
  }

  /**
   * Drops an event. Chromium sends no more frames of a screencast until a frame is acknowledged, so a dropped frame is
   * acknowledged for the client.
   */
  #dropEvent(channel: Channel, message: Buffer): void {
    if (!isScreencastFrame(message)) return;
    const params = { sessionId: Number(parseEvent(message).params?.sessionId) };
    const ack = { id: --this.#ownId, method: 'Page.screencastFrameAck', params, ...sessionFieldOf(channel) };
    if (channel.parent) this.#mux.pipe.send([encode(ack)]);
    else this.#mux.pipe.send([this.#rootPrefix, encode(ack).subarray(1)]);
  }

  fail(channel: Channel, id: number, message: string): void {
    this.#responseBytesLimits.delete(`${channel.id} ${id}`);
    const received = errorResponse(channel, id, message);
    this.#tapResponse(channel, id, received);
    this.#listener.message(received);
  }

  batchEnd(): void {
    this.#listener.batchEnd();
  }

  #setRoot(root: Channel): void {
    this.#root = root;
    this.#channels.set(root.id, root);
    this.#rootPrefix = Buffer.from(`{"sessionId":"${root.id}",`);
  }

  #judge(channel: Channel, envelope: Envelope, message: Buffer): void {
    const parsedMessage = parseJson(message);
    if (!isObject(parsedMessage))
      return this.#reply(encode({ id: envelope.id, error: { code: PARSE_ERROR, message: 'the message is not JSON' } }));
    const params = parsedMessage.params ?? {};
    if (!isObject(params))
      return this.#reply(errorResponse(channel, envelope.id, "'params' must be an object", INVALID_REQUEST));
    const isForBrowser = (!channel.parent && !this.#isOnPage) || this.#browserChannelIds.has(channel.id);
    const verdict = this.#policy.judge({ method: envelope.method, params, isForBrowser });
    if (!(verdict instanceof Promise)) return this.#execute(channel, envelope, message, params, verdict);
    const caughtVerdict = verdict.catch((error: unknown): Verdict => ({ refuse: reason(error) }));
    this.#inOrder(caughtVerdict, finalVerdict => this.#execute(channel, envelope, message, params, finalVerdict));
  }

  /** Waits for `work`, and buffers later messages of the client until `use` has been called with the result. */
  #inOrder<T>(work: Promise<T>, use: (result: T) => void): void {
    this.#isBusy = true;
    this.#listener.setPaused(true);
    void work
      .then(result => {
        this.#isBusy = false;
        use(result);
        for (let next = this.#queue.shift(); next; next = this.#isBusy ? undefined : this.#queue.shift()) {
          this.#bufferedBytes -= next.length;
          this.receive(next);
        }
        if (!this.#isBusy) this.#listener.setPaused(false);
        this.#listener.batchEnd();
      })
      .catch(error => this.#listener.failed(error));
  }

  /**
   * Executes a judged command. The message is encoded again from the parsed value, so that the browser receives exactly
   * the command that was judged.
   */
  #execute(channel: Channel, envelope: Envelope, message: Buffer, params: JsonObject, verdict: Verdict): void {
    const { id, method } = envelope;
    if ('defer' in verdict) return this.#executeLater(channel, envelope, message, params, verdict.defer);
    if ('refuse' in verdict) {
      const refusal = errorResponse(channel, id, verdict.refuse);
      this.#tapCommand(channel, method, message)?.(refusal);
      return this.#reply(refusal);
    }
    if ('restoreOthers' in verdict) return this.#executeAndRestore(channel, envelope, message, params);
    if ('respondWith' in verdict)
      return this.#reply(encode({ id, result: verdict.respondWith, ...sessionFieldOf(channel) }));
    const sentParams = 'rewrite' in verdict ? verdict.rewrite : params;
    const encodedCommand = encode({ id, method, params: sentParams, ...sessionFieldOf(channel) });
    if (method === AUTO_ATTACH) this.#holds.onAutoAttach(this, channel, sentParams);
    this.#forward(channel, { ...envelope, start: 0 }, encodedCommand, verdict.onResponse);
  }

  /** Sends the command, then restores the overrides that other clients have set. */
  #executeAndRestore(channel: Channel, envelope: Envelope, message: Buffer, params: JsonObject): void {
    const onResponse: OnResponse = received => {
      const name = overrideOf(envelope.method);
      if (name !== undefined && channel.targetId !== undefined)
        this.#mux.restoreOverrides(channel.targetId, this, name);
      return received;
    };
    this.#execute(channel, envelope, message, params, { pass: true, onResponse });
  }

  #executeLater(
    channel: Channel,
    envelope: Envelope,
    message: Buffer,
    params: JsonObject,
    pendingVerdict: Promise<Verdict>,
  ): void {
    void pendingVerdict
      .catch((error: unknown): Verdict => ({ refuse: reason(error) }))
      .then(verdict => {
        if (this.#channels.get(channel.id) !== channel) return this.#reply(noSuchSession(envelope.id));
        this.#execute(channel, envelope, message, params, verdict);
        this.#listener.batchEnd();
      })
      .catch(error => this.#listener.failed(error));
  }

  #forward(channel: Channel, envelope: Envelope, message: Buffer, onResponse: OnResponse | undefined): void {
    if (channel.pendingCommands.has(envelope.id)) return this.#refuse(channel, envelope.id, ID_IN_USE_MESSAGE);
    channel.pendingCommands.set(envelope.id, this.#responseHandler(channel, envelope.method, onResponse));
    const { responseBytesMax } = this.#listener;
    if (responseBytesMax)
      this.#responseBytesLimits.set(`${channel.id} ${envelope.id}`, responseBytesMax(envelope.method));
    if (channel.parent) this.#mux.pipe.send([message]);
    else this.#mux.pipe.send([this.#rootPrefix, message.subarray(envelope.start + 1)]);
    if (envelope.method === RUN_IF_WAITING && !this.#holds.isWorker(channel)) this.#holds.onResumed(channel);
    noteOverride(channel, envelope.method, message);
    const responseTap = this.#tapCommand(channel, envelope.method, message);
    if (!responseTap) return;
    channel.responseTaps ??= new Map();
    channel.responseTaps.set(envelope.id, responseTap);
  }

  #tapCommand(channel: Channel, method: string, message: Buffer): ((received: Buffer) => void) | undefined {
    if (!this.#tap?.methods.has(method)) return undefined;
    return this.#tap.onCommand({ method, message, targetIds: targetIdsOf(channel) });
  }

  #tapResponse(channel: Channel, id: number, received: Buffer): void {
    const responseTap = channel.responseTaps?.get(id);
    if (!responseTap) return;
    channel.responseTaps?.delete(id);
    responseTap(received);
  }

  #responseHandler(channel: Channel, method: string, onResponse: OnResponse | undefined): OnResponse | undefined {
    if (method === 'Target.getTargets')
      return received => (onResponse ?? identity)(this.#withoutHiddenTargets(received));
    if (method === RUN_IF_WAITING && this.#holds.isWorker(channel))
      return received => this.#onResumeResponse(channel, received);
    return onResponse ?? (RELOAD_METHODS.has(method) ? keepAfterCrash : undefined);
  }

  #onResumeResponse(channel: Channel, received: IncomingMessage): IncomingMessage {
    this.#holds.onResumed(channel);
    return received;
  }

  #withoutHiddenTargets(answer: IncomingMessage): IncomingMessage {
    const targetInfos = answer.result?.targetInfos;
    if (!Array.isArray(targetInfos)) return answer;
    const visibleInfos = targetInfos.filter(
      info => isObject(info) && !isHidden(info) && !this.#heldMessages.has(textAt(info, 'targetId') ?? ''),
    );
    return { ...answer, result: { targetInfos: visibleInfos } };
  }

  async #transformResponse(channel: Channel, id: number, message: Buffer, onResponse: OnResponse): Promise<void> {
    try {
      const { sessionId: _, ...received } = await onResponse(parseIncomingMessage(message));
      this.#reply(encode({ ...received, ...sessionFieldOf(channel) }));
    } catch (error) {
      this.#reply(encode({ id, error: { code: SERVER_ERROR, message: reason(error) }, ...sessionFieldOf(channel) }));
    }
  }

  #onTargetEvent(channel: Channel, message: Buffer): void {
    const event = parseIncomingMessage(message);
    const info = objectAt(event.params, 'targetInfo');
    const targetId = textAt(info, 'targetId') ?? textAt(event.params, 'targetId');
    const sessionId = textAt(event.params, 'sessionId');
    if (event.method === 'Target.attachedToTarget') {
      if (!sessionId) return;
      const child = this.#mux.open(sessionId, this, channel, targetId);
      this.#channels.set(sessionId, child);
      if (textAt(info, 'type') === 'browser') this.#browserChannelIds.add(sessionId);
      if (info && isHidden(info)) return this.#detachHidden(channel, child);
      this.#holds.onAttached(this, child, textAt(info, 'type') ?? '', event.params?.waitingForDebugger === true);
    }
    if (event.method === 'Target.detachedFromTarget' && sessionId) {
      if (this.#hiddenChannelIds.delete(sessionId)) return this.#forget(sessionId);
      this.#deliver(channel, message, targetId);
      return this.#forget(sessionId);
    }
    if (info && isHidden(info)) return;
    if (event.method === 'Target.targetDestroyed' && targetId && this.#dropHeldMessages(targetId)) return;
    const visibleEvent = this.#policy.filterEvent ? this.#policy.filterEvent(message) : message;
    if (visibleEvent) this.#deliver(channel, visibleEvent, targetId);
  }

  /**
   * Detaches the client from a target that is hidden from it. This also resumes a target that is waiting for a
   * debugger.
   */
  #detachHidden(parent: Channel, child: Channel): void {
    this.#hiddenChannelIds.add(child.id);
    const id = --this.#ownId;
    const message = { id, method: 'Target.detachFromTarget', params: { sessionId: child.id }, sessionId: parent.id };
    this.#mux.pipe.send([encode(message)]);
  }

  #forget(sessionId: string): void {
    const channel = this.#channels.get(sessionId);
    if (!channel) return;
    this.#mux.drop(channel);
    this.#browserChannelIds.delete(sessionId);
    this.#removeChannels(one => this.#mux.find(one.id) === undefined);
  }

  /**
   * Called when the client has disconnected. Targets that the client held are no longer held, and the overrides
   * that other clients have set on its targets are restored.
   */
  close(): void {
    const targetIds = new Set([...this.#channels.values()].flatMap(({ targetId }) => targetId ?? []));
    this.#removeChannels(() => true);
    for (const targetId of targetIds) this.#mux.restoreOverrides(targetId, this);
  }

  #removeChannels(isGone: (channel: Channel) => boolean): void {
    const removedChannels = [...this.#channels.values()].filter(isGone);
    for (const channel of removedChannels) this.#channels.delete(channel.id);
    for (const channel of removedChannels) this.#holds.onDetached(channel);
  }

  #deliver(channel: Channel, message: Buffer, targetId: string | undefined): void {
    const targetMessages = targetId === undefined ? undefined : this.#heldMessages.get(targetId);
    if (!targetMessages) return this.#listener.message(asSeenByOwner(channel, message));
    if (targetMessages.length >= HELD_MESSAGES_MAX)
      for (const one of targetMessages.splice(1, 1)) this.#bufferedBytes -= one.message.length;
    this.#bufferedBytes += message.length;
    // Copied, because the message is part of a larger read buffer that would stay in memory.
    targetMessages.push({ channel, message: Buffer.from(message) });
  }

  #dropHeldMessages(targetId: string): boolean {
    for (const { message } of this.#heldMessages.get(targetId) ?? []) this.#bufferedBytes -= message.length;
    return this.#heldMessages.delete(targetId);
  }

  #refuse(channel: Channel, id: number, message: string): void {
    this.#reply(errorResponse(channel, id, message));
  }

  #reply(message: Buffer): void {
    this.#listener.message(message);
    this.#listener.batchEnd();
  }
}

function targetIdsOf(channel: Channel): string[] {
  const ids: string[] = [];
  for (let current: Channel | undefined = channel; current; current = current.parent)
    if (current.targetId) ids.push(current.targetId);
  return ids;
}

const isHidden = (info: JsonObject): boolean => HIDDEN_TYPES.has(textAt(info, 'type') ?? '');

const identity: OnResponse = received => received;

const sessionFieldOf = (channel: Channel): { sessionId?: string } => (channel.parent ? { sessionId: channel.id } : {});
