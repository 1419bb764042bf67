// The server's own eyes in one browser: a channel on every page, popup, out-of-process frame and worker, from its first
// message on. New targets are held until observers have said what they want to hear; holds.ts keeps clients undisturbed.

import { guarded, type OnFailure } from '../../kit/guard.ts';
import { type JsonObject, objectAt, textAt } from '../../kit/json.ts';
import type { Closeable } from '../../kit/scope.ts';
import { Asker, COMMAND_MS } from './asker.ts';
import type { Holds } from './holds.ts';
import { type Incoming, SERVER_ERROR } from './messages.ts';
import type { Channel, ChannelOwner, Mux, OnAnswer } from './mux.ts';

export type TargetKind = 'page' | 'iframe' | 'worker' | 'shared_worker' | 'service_worker';
const OF_THE_BROWSER: readonly TargetKind[] = ['page', 'service_worker', 'shared_worker'];
const OF_A_TARGET: readonly TargetKind[] = ['iframe', 'worker'];

/** `picture`: of a frame of a screencast, instead of its `data`. */
export type OnEvent = (method: string, params: JsonObject, picture?: Buffer) => void;

/** One target with a channel of ours. What is asked while an observer is told of it comes before its first script. */
export interface ObservedTarget {
  readonly id: string;
  readonly kind: TargetKind;
  readonly contextId: string | undefined;
  readonly openerId: string | undefined;
  /** As it was when we met; about:blank for most that are new. */
  readonly url: string;
  /** What it is part of: the page or frame of a frame or worker. */
  readonly parent: ObservedTarget | undefined;
  /** Met at its start and held: nothing of it was missed. */
  readonly fresh: boolean;
  readonly isGone: boolean;
  send(method: string, params?: JsonObject, ms?: number): Promise<JsonObject>;
  /** The same where nobody waits for the answer and the target may be gone by then. */
  say(method: string, params?: JsonObject): void;
  on(listener: OnEvent): Closeable;
  /** Called once when it is closed, or at once when it is. */
  whenGone(listener: () => void): void;
}

export interface Observer {
  target(target: ObservedTarget): void;
}

export class Observation implements ChannelOwner {
  readonly #mux: Mux;
  readonly #holds: Holds;
  readonly #asker: Asker;
  readonly #targets = new Map<string, Target>();
  readonly #observers = new Set<Observer>();
  /** Every target that is there has been told of. */
  readonly opened: Promise<void>;
  #root: Channel | undefined;

  constructor(mux: Mux, holds: Holds, beforeUse: (channelId: string) => void) {
    this.#mux = mux;
    this.#holds = holds;
    this.#asker = new Asker(mux);
    this.opened = this.#open(beforeUse);
    this.opened.catch(() => {}); // whoever observes hears of it
  }

  get channelId(): string | undefined {
    return this.#root?.id;
  }

  /** Its targets that show something: pages, and frames with a process of their own. */
  get documents(): readonly string[] {
    return [...this.#targets.values()].filter(({ kind }) => kind === 'page' || kind === 'iframe').map(({ id }) => id);
  }

  /** The observer hears of every target that is there, and of every one that comes. */
  add(observer: Observer): Closeable {
    this.#observers.add(observer);
    for (const target of this.#targets.values()) this.#tell(observer, target);
    return { close: () => void this.#observers.delete(observer) };
  }

  get isWanted(): boolean {
    return this.#observers.size > 0;
  }

  /** The browser is gone, or let go. */
  close(): void {
    for (const target of [...this.#targets.values()]) this.#forget(target);
  }

  incoming(channel: Channel, message: Buffer): void {
    const event = this.#asker.event(channel, message);
    if (!event?.method) return;
    if (event.method === 'Target.attachedToTarget') return this.#attached(channel, event);
    if (event.method === 'Target.detachedFromTarget') return this.#detached(textAt(event.params, 'sessionId'));
    this.#targets.get(channel.id)?.heard(event.method, event.params ?? {}, event.picture);
  }

  fail(_channel: Channel, id: number, message: string, onAnswer: OnAnswer | undefined): void {
    void onAnswer?.({ id, error: { code: SERVER_ERROR, message } });
  }

  rest(): void {}

  async #open(beforeUse: (channelId: string) => void): Promise<void> {
    this.#root = await this.#mux.attachToBrowser(this, beforeUse);
    await this.#asker.send(this.#root, 'Target.setAutoAttach', autoAttach(OF_THE_BROWSER));
  }

  #attached(parent: Channel, { params }: Incoming): void {
    const info = objectAt(params, 'targetInfo');
    const targetId = textAt(info, 'targetId');
    const channelId = textAt(params, 'sessionId');
    const kind = [...OF_THE_BROWSER, ...OF_A_TARGET].find(one => one === info?.type);
    if (!info || targetId === undefined || channelId === undefined || kind === undefined) return;
    const channel = this.#mux.open(channelId, this, parent, targetId);
    const fresh = params?.waitingForDebugger === true;
    const met = { id: targetId, kind, fresh, info, parent: this.#targets.get(parent.id) };
    const target = new Target(met, channel, this.#asker, this.#lost);
    this.#targets.set(channelId, target);
    target.say('Target.setAutoAttach', autoAttach(OF_A_TARGET));
    for (const observer of this.#observers) this.#tell(observer, target);
    // Also where it does not wait: Chromium lets `window.open` hang otherwise.
    this.#holds.whenFree(channel, kind, parent.targetId, () => target.say('Runtime.runIfWaitingForDebugger'));
  }

  readonly #lost: OnFailure = error => this.#mux.lost(error);

  /** One observer that fails takes nothing from the others, and holds up nobody's page. */
  readonly #tell = guarded(this.#lost, (observer: Observer, target: ObservedTarget) => observer.target(target));

  #detached(channelId: string | undefined): void {
    const channel = channelId === undefined ? undefined : this.#mux.find(channelId);
    if (!channel) return;
    this.#mux.drop(channel);
    for (const target of [...this.#targets.values()]) if (!this.#mux.find(target.channelId)) this.#forget(target);
  }

  #forget(target: Target): void {
    this.#targets.delete(target.channelId);
    this.#holds.forget(target.channelId);
    target.left();
  }
}

const autoAttach = (kinds: readonly TargetKind[]): JsonObject => ({
  autoAttach: true,
  waitForDebuggerOnStart: true,
  flatten: true,
  filter: [...kinds.map(type => ({ type })), { exclude: true }],
});

interface Met {
  readonly id: string;
  readonly kind: TargetKind;
  readonly fresh: boolean;
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
  readonly fresh: boolean;
  readonly #channel: Channel;
  readonly #asker: Asker;
  readonly #listeners = new Set<OnEvent>();
  readonly #onGone: Array<() => void> = [];
  readonly #lost: OnFailure;
  #gone = false;

  constructor({ id, kind, fresh, info, parent }: Met, channel: Channel, asker: Asker, lost: OnFailure) {
    this.#lost = lost;
    this.id = id;
    this.kind = kind;
    this.fresh = fresh;
    this.parent = parent;
    this.contextId = textAt(info, 'browserContextId');
    this.openerId = textAt(info, 'openerId');
    this.url = textAt(info, 'url') ?? '';
    this.#channel = channel;
    this.#asker = asker;
  }

  get channelId(): string {
    return this.#channel.id;
  }

  get isGone(): boolean {
    return this.#gone;
  }

  async send(method: string, params: JsonObject = {}, ms = COMMAND_MS): Promise<JsonObject> {
    if (this.#gone) throw new Error(`${method}: the target is gone`);
    return this.#asker.send(this.#channel, method, params, ms);
  }

  say(method: string, params: JsonObject = {}): void {
    this.send(method, params).catch(() => {});
  }

  on(listener: OnEvent): Closeable {
    this.#listeners.add(listener);
    return { close: () => void this.#listeners.delete(listener) };
  }

  whenGone(listener: () => void): void {
    if (this.#gone) listener();
    else this.#onGone.push(listener);
  }

  heard(method: string, params: JsonObject, picture?: Buffer): void {
    for (const listener of this.#listeners) {
      try {
        listener(method, params, picture);
      } catch (error) {
        this.#lost(error);
      }
    }
  }

  left(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#listeners.clear();
    for (const listener of this.#onGone.splice(0)) guarded(this.#lost, listener)();
  }
}
