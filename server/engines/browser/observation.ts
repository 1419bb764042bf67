// Opens a server channel to every page, popup, out-of-process frame and worker, so that the server receives all
// messages of a target, starting with the first. New targets are held until the observers have sent their first
// commands. holds.ts ensures that holding a target does not disturb clients.

import { guardListener, type OnFailure } from '../../kit/guard.ts';
import { type JsonObject, objectAt, textAt } from '../../kit/json.ts';
import type { Closeable } from '../../kit/scope.ts';
import { COMMAND_TIMEOUT_MS, CommandSender } from './command-sender.ts';
import type { Holds } from './holds.ts';
import { type IncomingMessage, SERVER_ERROR } from './messages.ts';
import type { Channel, ChannelOwner, Mux, OnResponse } from './mux.ts';

export type TargetKind = 'page' | 'iframe' | 'worker' | 'shared_worker' | 'service_worker';
const ROOT_KINDS: readonly TargetKind[] = ['page', 'service_worker', 'shared_worker'];
const CHILD_KINDS: readonly TargetKind[] = ['iframe', 'worker'];

/** `frameBytes` is the decoded image of a screencast frame. */
export type OnEvent = (method: string, params: JsonObject, frameBytes?: Buffer) => void;

/** One target. Commands that an observer sends in its `target` callback take effect before the first script runs. */
export interface ObservedTarget {
  readonly id: string;
  readonly kind: TargetKind;
  readonly contextId: string | undefined;
  readonly openerId: string | undefined;
  /** The URL at the time of attaching. It is about:blank for most new targets. */
  readonly url: string;
  /** The page or frame that contains this frame or worker. */
  readonly parent: ObservedTarget | undefined;
  /** Whether the server was attached before the target's first script, so that no event was missed. */
  readonly isNew: boolean;
  readonly isGone: boolean;
  send(method: string, params?: JsonObject, ms?: number): Promise<JsonObject>;
  /** Sends a command and ignores the response and errors. */
  post(method: string, params?: JsonObject): void;
  on(listener: OnEvent): Closeable;
  /** Calls the listener once when the target is closed, or at once if it has already been closed. */
  whenGone(listener: () => void): void;
}

export interface Observer {
  target(target: ObservedTarget): void;
}

export interface ObservationOptions {
  /** Called with the id of the channel before it is used. */
  readonly beforeUse: (channelId: string) => void;
  /** Whether a new page is not reported to observers, because it is being closed. */
  readonly isIgnored: (targetId: string) => boolean;
}

export class Observation implements ChannelOwner {
  readonly #mux: Mux;
  readonly #holds: Holds;
  readonly #commandSender: CommandSender;
  readonly #targets = new Map<string, Target>();
  readonly #observers = new Set<Observer>();
  readonly #isIgnored: ObservationOptions['isIgnored'];
  /** Resolves when all existing targets have been reported. */
  readonly whenOpened: Promise<void>;
  #root: Channel | undefined;

  constructor(mux: Mux, holds: Holds, { beforeUse, isIgnored }: ObservationOptions) {
    this.#mux = mux;
    this.#holds = holds;
    this.#isIgnored = isIgnored;
    this.#commandSender = new CommandSender(mux);
    this.whenOpened = this.#open(beforeUse);
    this.whenOpened.catch(() => {}); // observers await `whenOpened` and get the error there
  }

  get channelId(): string | undefined {
    return this.#root?.id;
  }

  /** Target ids of pages and of out-of-process frames. */
  get documents(): readonly string[] {
    return [...this.#targets.values()].filter(({ kind }) => kind === 'page' || kind === 'iframe').map(({ id }) => id);
  }

  /** Reports every existing and every new target to the observer. */
  add(observer: Observer): Closeable {
    this.#observers.add(observer);
    for (const target of this.#targets.values()) this.#notify(observer, target);
    return { close: () => void this.#observers.delete(observer) };
  }

  get hasObservers(): boolean {
    return this.#observers.size > 0;
  }

  /** Must be called when the browser has exited or the channel has been detached. */
  close(): void {
    for (const target of [...this.#targets.values()]) this.#forget(target);
  }

  handleMessage(channel: Channel, message: Buffer): void {
    const event = this.#commandSender.receive(channel, message);
    if (!event?.method) return;
    if (event.method === 'Target.attachedToTarget') return this.#onAttached(channel, event);
    if (event.method === 'Target.detachedFromTarget') return this.#onDetached(textAt(event.params, 'sessionId'));
    this.#targets.get(channel.id)?.emit(event.method, event.params ?? {}, event.frameBytes);
  }

  fail(_channel: Channel, id: number, message: string, onResponse: OnResponse | undefined): void {
    void onResponse?.({ id, error: { code: SERVER_ERROR, message } });
  }

  batchEnd(): void {}

  async #open(beforeUse: (channelId: string) => void): Promise<void> {
    this.#root = await this.#mux.attachToBrowser(this, beforeUse);
    await this.#commandSender.send(this.#root, 'Target.setAutoAttach', autoAttachParams(ROOT_KINDS));
  }

  #onAttached(parent: Channel, { params }: IncomingMessage): void {
    const info = objectAt(params, 'targetInfo');
    const targetId = textAt(info, 'targetId');
    const channelId = textAt(params, 'sessionId');
    const kind = [...ROOT_KINDS, ...CHILD_KINDS].find(one => one === info?.type);
    if (!info || targetId === undefined || channelId === undefined || kind === undefined) return;
    const channel = this.#mux.open(channelId, this, parent, targetId);
    const isNew = params?.waitingForDebugger === true;
    const targetParams = { id: targetId, kind, isNew, info, parent: this.#targets.get(parent.id) };
    const target = new Target(targetParams, channel, this.#commandSender, this.#onError);
    if (!this.#isIgnored(targetId)) {
      this.#targets.set(channelId, target);
      target.post('Target.setAutoAttach', autoAttachParams(CHILD_KINDS));
      for (const observer of this.#observers) this.#notify(observer, target);
    }
    // Sent even if the target is not waiting, because otherwise `window.open` hangs in Chromium.
    this.#holds.whenNotHeld(channel, kind, parent.targetId, () => target.post('Runtime.runIfWaitingForDebugger'));
  }

  readonly #onError: OnFailure = error => this.#mux.reportUnreadable(error);

  /** The guard ensures that an observer that throws neither affects other observers nor keeps a page waiting. */
  readonly #notify = guardListener(this.#onError, (observer: Observer, target: ObservedTarget) =>
    observer.target(target),
  );

  #onDetached(channelId: string | undefined): void {
    const channel = channelId === undefined ? undefined : this.#mux.find(channelId);
    if (!channel) return;
    this.#mux.drop(channel);
    for (const target of [...this.#targets.values()]) if (!this.#mux.find(target.channelId)) this.#forget(target);
  }

  #forget(target: Target): void {
    this.#targets.delete(target.channelId);
    this.#holds.forget(target.channelId);
    target.markGone();
  }
}

const autoAttachParams = (kinds: readonly TargetKind[]): JsonObject => ({
  autoAttach: true,
  waitForDebuggerOnStart: true,
  flatten: true,
  filter: [...kinds.map(type => ({ type })), { exclude: true }],
});

interface TargetParams {
  readonly id: string;
  readonly kind: TargetKind;
  readonly isNew: boolean;
  readonly info: JsonObject;
  readonly parent: ObservedTarget | undefined;
}

class Target implements ObservedTarget {
  readonly id: string;
  readonly kind: TargetKind;
  readonly contextId: string | undefined;
  readonly openerId: string | undefined;
  readonly url: string;
  readonly parent: ObservedTarget | undefined;
  readonly isNew: boolean;
  readonly #channel: Channel;
  readonly #commandSender: CommandSender;
  readonly #listeners = new Set<OnEvent>();
  readonly #goneListeners: Array<() => void> = [];
  readonly #onListenerError: OnFailure;
  #isTargetGone = false;

  constructor(
    { id, kind, isNew, info, parent }: TargetParams,
    channel: Channel,
    commandSender: CommandSender,
    onListenerError: OnFailure,
  ) {
    this.#onListenerError = onListenerError;
    this.id = id;
    this.kind = kind;
    this.isNew = isNew;
    this.parent = parent;
    this.contextId = textAt(info, 'browserContextId');
    this.openerId = textAt(info, 'openerId');
    this.url = textAt(info, 'url') ?? '';
    this.#channel = channel;
    this.#commandSender = commandSender;
  }

  get channelId(): string {
    return this.#channel.id;
  }

  get isGone(): boolean {
    return this.#isTargetGone;
  }

  async send(method: string, params: JsonObject = {}, ms = COMMAND_TIMEOUT_MS): Promise<JsonObject> {
    if (this.#isTargetGone) throw new Error(`${method}: the target is closed`);
    return this.#commandSender.send(this.#channel, method, params, ms);
  }

  post(method: string, params: JsonObject = {}): void {
    this.send(method, params).catch(() => {});
  }

  on(listener: OnEvent): Closeable {
    this.#listeners.add(listener);
    return { close: () => void this.#listeners.delete(listener) };
  }

  whenGone(listener: () => void): void {
    if (this.#isTargetGone) listener();
    else this.#goneListeners.push(listener);
  }

  emit(method: string, params: JsonObject, frameBytes?: Buffer): void {
    for (const listener of this.#listeners) {
      try {
        listener(method, params, frameBytes);
      } catch (error) {
        this.#onListenerError(error);
      }
    }
  }

  markGone(): void {
    if (this.#isTargetGone) return;
    this.#isTargetGone = true;
    this.#listeners.clear();
    for (const listener of this.#goneListeners.splice(0)) guardListener(this.#onListenerError, listener)();
  }
}
