// One client on the mux: its channels, what it may say (the policy decides, given from outside), and what it gets to
// hear. Browser-internal targets are hidden from it; pages whose renderer was stuck when it came are held back until
// they answer, because stock clients wait for every page before they return from connecting.

import { reason } from '../../kit/fault.ts';
import { parseJson } from '../../kit/foreign.ts';
import { isObject, type JsonObject, objectAt, textAt } from '../../kit/json.ts';
import { BadEnvelope, type Envelope, readEnvelope } from './envelope.ts';
import type { ReadMessage } from './envelope-job.ts';
import type { Holds } from './holds.ts';
import {
  answerId,
  encode,
  INVALID_REQUEST,
  type Incoming,
  isTargetEvent,
  PARSE_ERROR,
  parseIncoming,
  SERVER_ERROR,
} from './messages.ts';
import {
  asSeenByOwner,
  type Channel,
  type ChannelOwner,
  errorAnswer,
  type Mux,
  noSuchSession,
  type OnAnswer,
  outlivesCrash,
} from './mux.ts';
import { noteOverride, overrideOf } from './overrides.ts';
import { OUTGOING_WAITING_BYTES_MAX } from './pipe.ts';

/** Above this a message is read in another thread, and a command that the policy looks into is refused. */
export const LONG_MESSAGE_BYTES = 4 * 1024 ** 2;
/** Commands of one client that may wait for their answers at once. */
export const PENDING_MAX = 50_000;
/** Messages kept for one page that is held back; beyond it the oldest go, the page's state is read anew by then. */
const HELD_MESSAGES_MAX = 1_000;
const HIDDEN_TYPES: ReadonlySet<string> = new Set(['browser_ui']);
/** Sent to a page that has just crashed, they bring it back. */
const REVIVING: ReadonlySet<string> = new Set(['Page.navigate', 'Page.reload']);
const AUTO_ATTACH = 'Target.setAutoAttach';
const LET_GO = 'Runtime.runIfWaitingForDebugger';

export interface Command {
  readonly method: string;
  readonly params: JsonObject;
  /** Said to the browser itself rather than to a target. */
  readonly toBrowser: boolean;
}

export type Verdict =
  | { readonly pass: true; readonly onAnswer?: OnAnswer }
  | { readonly rewrite: JsonObject; readonly onAnswer?: OnAnswer }
  | { readonly answer: JsonObject }
  /** It passes, and what other clients have set by the same command on that target holds again. */
  | { readonly yield: true }
  | { readonly refuse: string }
  /** It waits beside the others, which go on. Commands that are set aside keep their order. */
  | { readonly aside: Promise<Verdict> };

export interface Policy {
  /** Only these methods are parsed and judged; all others pass as the same bytes. */
  readonly watched: ReadonlySet<string>;
  /** These too, for the time being. */
  alsoWatched?(method: string): boolean;
  judge(command: Command): Verdict | Promise<Verdict>;
  /** Every event on its way to the client, as its bytes. */
  heard?(event: Buffer): void;
}

export interface ClientListener {
  message(message: Buffer): void;
  /** All messages of one turn were handed over. */
  rest(): void;
  /** Stop (or go on) reading from the client: a command of it is being thought about, or read. */
  hold(on: boolean): void;
  /** What this client said could not be handled: it ends, nobody else does. */
  failed(error: unknown): void;
  /** Reads the envelope of a long message somewhere else than on the main thread. The message is empty here meanwhile. */
  readLong(message: Buffer): Promise<ReadMessage>;
}

/** A command of a client on its way. The bytes are the client's: whoever keeps them longer than a moment copies them. */
export interface Overheard {
  readonly method: string;
  readonly message: Buffer;
  /** The target that it is for, and those that one is part of; none: the browser itself. */
  readonly targetIds: readonly string[];
}

/** Hears some commands and their answers. It must not throw, nor take long. */
export interface CommandTap {
  /** All others pass it by. */
  readonly methods: ReadonlySet<string>;
  /** Gives who wants the answer, which is the client's too. */
  asked(command: Overheard): ((answer: Buffer) => void) | undefined;
}

export class MuxClient implements ChannelOwner {
  readonly #mux: Mux;
  readonly #holds: Holds;
  readonly #policy: Policy;
  readonly #listener: ClientListener;
  readonly #tap: CommandTap | undefined;
  readonly #channels = new Map<string, Channel>();
  readonly #held = new Map<string, Array<{ channel: Channel; message: Buffer }>>();
  readonly #hidden = new Set<string>();
  /** Channels to the browser beside the client's root. */
  readonly #browserChannels = new Set<string>();
  readonly #waiting: Buffer[] = [];
  #root: Channel | undefined;
  #rootPrefix = Buffer.alloc(0);
  #isOnPage = false;
  #isBusy = false;
  #keptBytes = 0;
  #ownId = 0;

  constructor(mux: Mux, holds: Holds, policy: Policy, listener: ClientListener, tap?: CommandTap) {
    this.#mux = mux;
    this.#tap = tap;
    this.#holds = holds;
    this.#policy = policy;
    this.#listener = listener;
  }

  async open(beforeUse: (channelId: string) => void): Promise<void> {
    this.#begin(await this.#mux.attachToBrowser(this, beforeUse));
  }

  /** What it says to the root goes to this page; the browser itself is out of its reach. */
  openOnPage(page: Channel): void {
    this.#isOnPage = true;
    this.#begin(page);
  }

  get channelId(): string | undefined {
    return this.#root?.id;
  }

  /** Of messages that wait: for a page to answer, or behind a command that is being thought about. */
  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** Holds back what the browser says of this target until `reveal`. */
  withhold(targetId: string): void {
    this.#held.set(targetId, []);
  }

  reveal(targetId: string): void {
    const held = this.#held.get(targetId);
    if (!held) return;
    this.#held.delete(targetId);
    for (const { channel, message } of held) {
      this.#keptBytes -= message.length;
      this.#listener.message(asSeenByOwner(channel, message));
    }
    this.#listener.rest();
  }

  /** One message of the client. While the policy thinks about a command, or a long one is read, the ones behind it wait. */
  receive(message: Buffer): void {
    if (this.#isBusy) {
      this.#waiting.push(message);
      this.#keptBytes += message.length;
      return;
    }
    if (message.length > LONG_MESSAGE_BYTES) return this.#receiveLong(message);
    let envelope: Envelope;
    try {
      envelope = readEnvelope(message);
    } catch (error) {
      if (!(error instanceof BadEnvelope)) throw error;
      return this.#say(encode({ id: error.id, error: { code: error.code, message: error.message } }));
    }
    this.#take(envelope, message);
  }

  #receiveLong(message: Buffer): void {
    const bytes = message.length;
    this.#keptBytes += bytes;
    const reading = this.#listener.readLong(message).finally(() => {
      this.#keptBytes -= bytes;
    });
    this.#inOrder(reading, ({ message: { buffer, byteOffset, byteLength }, read }) => {
      if ('bad' in read) this.#say(encode({ id: read.id, error: { code: read.code, message: read.bad } }));
      else this.#take(read, Buffer.from(buffer, byteOffset, byteLength));
    });
  }

  #take(envelope: Envelope, message: Buffer): void {
    const channel = envelope.sessionId === undefined ? this.#root : this.#channels.get(envelope.sessionId);
    if (!channel) return this.#say(noSuchSession(envelope.id));
    if (channel.pending.size >= PENDING_MAX)
      return this.#refuse(
        channel,
        envelope.id,
        `${PENDING_MAX} commands wait for their answers already. Wait for some.`,
      );
    if (this.#mux.pipe.waitingBytes + message.length > OUTGOING_WAITING_BYTES_MAX)
      return this.#refuse(channel, envelope.id, 'The browser does not read: too many bytes wait for it already.');
    if (this.#policy.watched.has(envelope.method) || this.#policy.alsoWatched?.(envelope.method)) {
      if (message.length > LONG_MESSAGE_BYTES)
        return this.#refuse(channel, envelope.id, `${envelope.method} may have ${LONG_MESSAGE_BYTES} bytes at most.`);
      return this.#watched(channel, envelope, message);
    }
    this.#forward(channel, envelope, message, undefined);
  }

  incoming(channel: Channel, message: Buffer): void {
    const id = answerId(message);
    if (id === undefined) {
      if (isTargetEvent(message)) return this.#targetEvent(channel, message);
      this.#policy.heard?.(message);
      return this.#deliver(channel, message, channel.targetId);
    }
    const onAnswer = channel.pending.get(id);
    if (!channel.pending.delete(id)) return;
    if (channel.overheard) this.#answered(channel, id, message);
    if (onAnswer) void this.#transformed(channel, id, message, onAnswer);
    else this.#deliver(channel, message, undefined);
  }

  fail(channel: Channel, id: number, message: string): void {
    const answer = errorAnswer(channel, id, message);
    this.#answered(channel, id, answer);
    this.#listener.message(answer);
  }

  rest(): void {
    this.#listener.rest();
  }

  #begin(root: Channel): void {
    this.#root = root;
    this.#channels.set(root.id, root);
    this.#rootPrefix = Buffer.from(`{"sessionId":"${root.id}",`);
  }

  #watched(channel: Channel, envelope: Envelope, message: Buffer): void {
    const parsed = parseJson(message);
    if (!isObject(parsed))
      return this.#say(encode({ id: envelope.id, error: { code: PARSE_ERROR, message: 'the message is not JSON' } }));
    const params = parsed.params ?? {};
    if (!isObject(params))
      return this.#say(errorAnswer(channel, envelope.id, "'params' must be an object", INVALID_REQUEST));
    const toBrowser = (!channel.parent && !this.#isOnPage) || this.#browserChannels.has(channel.id);
    const verdict = this.#policy.judge({ method: envelope.method, params, toBrowser });
    if (!(verdict instanceof Promise)) return this.#execute(channel, envelope, message, params, verdict);
    const judged = verdict.catch((error: unknown): Verdict => ({ refuse: reason(error) }));
    this.#inOrder(judged, decided => this.#execute(channel, envelope, message, params, decided));
  }

  /** What the client says meanwhile waits until the result was used. */
  #inOrder<T>(work: Promise<T>, use: (result: T) => void): void {
    this.#isBusy = true;
    this.#listener.hold(true);
    void work
      .then(result => {
        this.#isBusy = false;
        use(result);
        for (let next = this.#waiting.shift(); next; next = this.#isBusy ? undefined : this.#waiting.shift()) {
          this.#keptBytes -= next.length;
          this.receive(next);
        }
        if (!this.#isBusy) this.#listener.hold(false);
        this.#listener.rest();
      })
      .catch(error => this.#listener.failed(error));
  }

  /** What was judged is what is sent: the message is written anew from the parsed value. */
  #execute(channel: Channel, envelope: Envelope, message: Buffer, params: JsonObject, verdict: Verdict): void {
    const { id, method } = envelope;
    if ('aside' in verdict) return this.#setAside(channel, envelope, message, params, verdict.aside);
    if ('refuse' in verdict) {
      const refusal = errorAnswer(channel, id, verdict.refuse);
      this.#overheard(channel, method, message)?.(refusal);
      return this.#say(refusal);
    }
    if ('yield' in verdict) return this.#yield(channel, envelope, message, params);
    if ('answer' in verdict) return this.#say(encode({ id, result: verdict.answer, ...sessionOf(channel) }));
    const sent = 'rewrite' in verdict ? verdict.rewrite : params;
    const clean = encode({ id, method, params: sent, ...sessionOf(channel) });
    if (method === AUTO_ATTACH) this.#holds.autoAttach(this, channel, sent);
    this.#forward(channel, { ...envelope, start: 0 }, clean, verdict.onAnswer);
  }

  /** It goes, and then what others have set there holds again. */
  #yield(channel: Channel, envelope: Envelope, message: Buffer, params: JsonObject): void {
    const onAnswer: OnAnswer = answer => {
      const name = overrideOf(envelope.method);
      if (channel.targetId !== undefined) this.#mux.sayOverridesAgain(channel.targetId, this, name);
      return answer;
    };
    this.#execute(channel, envelope, message, params, { pass: true, onAnswer });
  }

  #setAside(channel: Channel, envelope: Envelope, message: Buffer, params: JsonObject, aside: Promise<Verdict>): void {
    void aside
      .catch((error: unknown): Verdict => ({ refuse: reason(error) }))
      .then(verdict => {
        if (this.#channels.get(channel.id) !== channel) return this.#say(noSuchSession(envelope.id));
        this.#execute(channel, envelope, message, params, verdict);
        this.#listener.rest();
      })
      .catch(error => this.#listener.failed(error));
  }

  #forward(channel: Channel, envelope: Envelope, message: Buffer, onAnswer: OnAnswer | undefined): void {
    channel.pending.set(envelope.id, this.#seen(channel, envelope.method, onAnswer));
    if (channel.parent) this.#mux.pipe.send([message]);
    else this.#mux.pipe.send([this.#rootPrefix, message.subarray(envelope.start + 1)]);
    if (envelope.method === LET_GO && !this.#holds.answersFirst(channel)) this.#holds.resumed(channel);
    noteOverride(channel, envelope.method, message);
    const answered = this.#overheard(channel, envelope.method, message);
    if (!answered) return;
    channel.overheard ??= new Map();
    channel.overheard.set(envelope.id, answered);
  }

  #overheard(channel: Channel, method: string, message: Buffer): ((answer: Buffer) => void) | undefined {
    if (!this.#tap?.methods.has(method)) return undefined;
    return this.#tap.asked({ method, message, targetIds: targetIdsOf(channel) });
  }

  #answered(channel: Channel, id: number, answer: Buffer): void {
    const hear = channel.overheard?.get(id);
    if (!hear) return;
    channel.overheard?.delete(id);
    hear(answer);
  }

  #seen(channel: Channel, method: string, onAnswer: OnAnswer | undefined): OnAnswer | undefined {
    if (method === 'Target.getTargets') return answer => this.#visibleTargets(answer);
    if (method === LET_GO && this.#holds.answersFirst(channel)) return answer => this.#resumed(channel, answer);
    return onAnswer ?? (REVIVING.has(method) ? outlivesCrash : undefined);
  }

  #resumed(channel: Channel, answer: Incoming): Incoming {
    this.#holds.resumed(channel);
    return answer;
  }

  #visibleTargets(answer: Incoming): Incoming {
    const infos = answer.result?.targetInfos;
    if (!Array.isArray(infos)) return answer;
    const visible = infos.filter(
      info => isObject(info) && !isHidden(info) && !this.#held.has(textAt(info, 'targetId') ?? ''),
    );
    return { ...answer, result: { targetInfos: visible } };
  }

  async #transformed(channel: Channel, id: number, message: Buffer, onAnswer: OnAnswer): Promise<void> {
    try {
      const { sessionId: _, ...answer } = await onAnswer(parseIncoming(message));
      this.#say(encode({ ...answer, ...sessionOf(channel) }));
    } catch (error) {
      this.#say(encode({ id, error: { code: SERVER_ERROR, message: reason(error) }, ...sessionOf(channel) }));
    }
  }

  #targetEvent(channel: Channel, message: Buffer): void {
    const event = parseIncoming(message);
    const info = objectAt(event.params, 'targetInfo');
    const targetId = textAt(info, 'targetId') ?? textAt(event.params, 'targetId');
    const sessionId = textAt(event.params, 'sessionId');
    if (event.method === 'Target.attachedToTarget') {
      if (!sessionId) return;
      const child = this.#mux.open(sessionId, this, channel, targetId);
      this.#channels.set(sessionId, child);
      if (textAt(info, 'type') === 'browser') this.#browserChannels.add(sessionId);
      if (info && isHidden(info)) return this.#leave(channel, child);
      this.#holds.told(this, child, textAt(info, 'type') ?? '', event.params?.waitingForDebugger === true);
    }
    if (event.method === 'Target.detachedFromTarget' && sessionId) {
      if (this.#hidden.delete(sessionId)) return this.#forget(sessionId);
      this.#deliver(channel, message, targetId);
      return this.#forget(sessionId);
    }
    if (info && isHidden(info)) return;
    if (event.method === 'Target.targetDestroyed' && targetId && this.#dropHeld(targetId)) return;
    this.#deliver(channel, message, targetId);
  }

  /** Lets go of a target that the client must not see; one that waits for a debugger runs on when detached. */
  #leave(parent: Channel, child: Channel): void {
    this.#hidden.add(child.id);
    const id = --this.#ownId;
    const message = { id, method: 'Target.detachFromTarget', params: { sessionId: child.id }, sessionId: parent.id };
    this.#mux.pipe.send([encode(message)]);
  }

  #forget(sessionId: string): void {
    const channel = this.#channels.get(sessionId);
    if (!channel) return;
    this.#mux.drop(channel);
    this.#browserChannels.delete(sessionId);
    this.#leaveHolds(one => this.#mux.find(one.id) === undefined);
  }

  /** The client is gone: what it held, others may let go, and what it has pushed aside is set again. */
  close(): void {
    const targets = this.#isOnPage
      ? new Set([...this.#channels.values()].flatMap(({ targetId }) => targetId ?? []))
      : [];
    this.#leaveHolds(() => true);
    for (const targetId of targets) this.#mux.sayOverridesAgain(targetId, this);
  }

  #leaveHolds(isGone: (channel: Channel) => boolean): void {
    const gone = [...this.#channels.values()].filter(isGone);
    for (const channel of gone) this.#channels.delete(channel.id);
    for (const channel of gone) this.#holds.left(channel);
  }

  #deliver(channel: Channel, message: Buffer, targetId: string | undefined): void {
    const held = targetId === undefined ? undefined : this.#held.get(targetId);
    if (!held) return this.#listener.message(asSeenByOwner(channel, message));
    if (held.length >= HELD_MESSAGES_MAX) for (const one of held.splice(1, 1)) this.#keptBytes -= one.message.length;
    this.#keptBytes += message.length;
    // A copy: what waits long must not keep all that was read with it.
    held.push({ channel, message: Buffer.from(message) });
  }

  #dropHeld(targetId: string): boolean {
    for (const { message } of this.#held.get(targetId) ?? []) this.#keptBytes -= message.length;
    return this.#held.delete(targetId);
  }

  #refuse(channel: Channel, id: number, message: string): void {
    this.#say(errorAnswer(channel, id, message));
  }

  #say(message: Buffer): void {
    this.#listener.message(message);
    this.#listener.rest();
  }
}

function targetIdsOf(channel: Channel): string[] {
  const ids: string[] = [];
  for (let each: Channel | undefined = channel; each; each = each.parent) if (each.targetId) ids.push(each.targetId);
  return ids;
}

const isHidden = (info: JsonObject): boolean => HIDDEN_TYPES.has(textAt(info, 'type') ?? '');

const sessionOf = (channel: Channel): { sessionId?: string } => (channel.parent ? { sessionId: channel.id } : {});
