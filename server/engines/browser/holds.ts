// Tracks which clients hold new targets. The first `Runtime.runIfWaitingForDebugger` resumes a target for all channels,
// so the server's own channels send it only when no client holds the target, or right after a client has sent it.
import { isObject, type JsonObject } from '../../kit/json.ts';
import type { Channel } from './mux.ts';

/** If a client is not attached to a new target within this time, the server no longer waits for the client. */
const ATTACH_TIMEOUT_MS = 2_000;
/** Chromium's default if `Target.setAutoAttach` has no filter. */
const STANDARD_FILTER: readonly JsonObject[] = [{ type: 'browser', exclude: true }, { type: 'tab', exclude: true }, {}];
/** Puppeteer first attaches to a tab and holds it. It is attached to the page in the tab only after that. */
const TAB = 'tab';
const PAGE = 'page';
/** Types of targets to which a client may be attached from the root as well as from a page. */
const SHARED_TYPES: ReadonlySet<string> = new Set(['service_worker', 'shared_worker']);
const WORKER_TYPES: ReadonlySet<string> = new Set(['worker', ...SHARED_TYPES]);

interface HeldChannel {
  readonly client: object;
  readonly type: string;
  isWaiting: boolean;
}

interface WaitingTarget {
  readonly targetId: string;
  readonly type: string;
  readonly scope: string | undefined;
  readonly resume: () => void;
  timer: NodeJS.Timeout | undefined;
}

export class Holds {
  /** The client channels on which new targets are attached and held, with the filter that each channel has set. */
  readonly #holdingChannels = new Map<Channel, { client: object; filter: readonly JsonObject[] }>();
  /** The clients' channels to each target, by target id. */
  readonly #clientChannels = new Map<string, Map<Channel, HeldChannel>>();
  /** Targets that the server holds, by the id of the server's channel. */
  readonly #waitingTargets = new Map<string, WaitingTarget>();

  /** Called when a client has sent `Target.setAutoAttach`. */
  onAutoAttach(client: object, channel: Channel, params: JsonObject): void {
    const isHolding = params.autoAttach === true && params.waitForDebuggerOnStart === true;
    if (!isHolding) return void this.#holdingChannels.delete(channel);
    const filter = Array.isArray(params.filter) ? params.filter.filter(isObject) : STANDARD_FILTER;
    this.#holdingChannels.set(channel, { client, filter });
  }

  /** Called when a client has been attached to a target. */
  onAttached(client: object, channel: Channel, type: string, isWaiting: boolean): void {
    const { targetId } = channel;
    if (targetId === undefined) return;
    const channelsOfTarget = this.#clientChannels.get(targetId) ?? new Map<Channel, HeldChannel>();
    this.#clientChannels.set(targetId, channelsOfTarget.set(channel, { client, type, isWaiting }));
    this.#checkTarget(targetId);
  }

  /**
   * Whether the target of a client's channel is a worker. Messages that are sent to one worker on different channels
   * may arrive in a different order, so the server's resume could overtake earlier commands of the client. For a
   * worker, the server therefore waits for the response to the client's resume. For a page, the server does not wait,
   * because a page responds late, and a window that was opened without an opener never responds.
   */
  isWorker(channel: Channel): boolean {
    return WORKER_TYPES.has(this.#findHeld(channel)?.type ?? '');
  }

  /**
   * Called when a client has sent the command that resumes a target. For a worker, called when the response has
   * arrived.
   */
  onResumed(channel: Channel): void {
    const heldChannel = this.#findHeld(channel);
    if (!heldChannel) return;
    heldChannel.isWaiting = false;
    for (const [id, waitingTarget] of [...this.#waitingTargets])
      if (waitingTarget.targetId === channel.targetId) this.#resume(id, waitingTarget);
  }

  /** Called when a client's channel has ended. The channel then no longer holds a target. */
  onDetached(channel: Channel): void {
    this.#holdingChannels.delete(channel);
    const { targetId } = channel;
    const targetChannels = targetId === undefined ? undefined : this.#clientChannels.get(targetId);
    if (targetId === undefined || !targetChannels?.delete(channel)) return;
    if (targetChannels.size === 0) this.#clientChannels.delete(targetId);
    this.#checkTarget(targetId);
  }

  /**
   * Calls `resume` as soon as no client holds the target of the server's channel. This is the case at once, right after
   * the first client has resumed the target, or when the clients that held it are gone. `scope` is the parent target,
   * or undefined for the browser.
   */
  whenNotHeld(channel: Channel, type: string, scope: string | undefined, resume: () => void): void {
    if (channel.targetId === undefined) return resume();
    this.#waitingTargets.set(channel.id, { targetId: channel.targetId, type, scope, resume, timer: undefined });
    this.#check(channel.id);
  }

  /** Called when the server's channel with this id has ended. */
  forget(id: string): void {
    const waitingTarget = this.#waitingTargets.get(id);
    if (waitingTarget?.timer) clearTimeout(waitingTarget.timer);
    this.#waitingTargets.delete(id);
  }

  #checkTarget(targetId: string): void {
    for (const [id, waitingTarget] of [...this.#waitingTargets])
      if (waitingTarget.targetId === targetId) this.#check(id);
  }

  #check(id: string): void {
    const waitingTarget = this.#waitingTargets.get(id);
    if (!waitingTarget) return;
    const attachments = [...(this.#clientChannels.get(waitingTarget.targetId)?.values() ?? [])];
    if (attachments.some(held => held.isWaiting)) return this.#setTimer(waitingTarget, undefined);
    const clients = new Set(attachments.map(held => held.client));
    const unattachedClients = this.#holders(waitingTarget).filter(client => !clients.has(client));
    if (unattachedClients.length === 0) return this.#resume(id, waitingTarget);
    if (waitingTarget.timer === undefined) this.#setTimer(waitingTarget, () => this.#onTimeout(id));
  }

  #onTimeout(id: string): void {
    const waitingTarget = this.#waitingTargets.get(id);
    if (!waitingTarget) return;
    if (this.#isTabHeld(waitingTarget)) this.#setTimer(waitingTarget, () => this.#onTimeout(id));
    else this.#resume(id, waitingTarget);
  }

  /** Whether a client that will hold this page still holds a tab. Such a client may not be attached to the page yet. */
  #isTabHeld(waitingTarget: WaitingTarget): boolean {
    if (waitingTarget.type !== PAGE) return false;
    const holders = new Set(this.#holders(waitingTarget));
    const holdsTab = ({ type, isWaiting, client }: HeldChannel): boolean =>
      type === TAB && isWaiting && holders.has(client);
    return [...this.#clientChannels.values()].some(channels => [...channels.values()].some(holdsTab));
  }

  #setTimer(waitingTarget: WaitingTarget, onExpired: (() => void) | undefined): void {
    if (waitingTarget.timer) clearTimeout(waitingTarget.timer);
    waitingTarget.timer = onExpired && setTimeout(onExpired, ATTACH_TIMEOUT_MS).unref();
  }

  #resume(id: string, waitingTarget: WaitingTarget): void {
    this.forget(id);
    waitingTarget.resume();
  }

  /** Returns the clients that will be attached to this target and hold it. */
  #holders({ type, scope }: WaitingTarget): readonly object[] {
    return [...this.#holdingChannels]
      .filter(([channel]) => channel.targetId === scope || SHARED_TYPES.has(type))
      .filter(([, { filter }]) => includesType(filter, type) || (type === PAGE && includesType(filter, TAB)))
      .map(([, { client }]) => client);
  }

  #findHeld(channel: Channel): HeldChannel | undefined {
    return channel.targetId === undefined ? undefined : this.#clientChannels.get(channel.targetId)?.get(channel);
  }
}

/** Whether a filter includes a type. The first matching entry decides. A type without a matching entry is excluded. */
function includesType(filter: readonly JsonObject[], type: string): boolean {
  const entry = filter.find(one => one.type === undefined || one.type === type);
  return entry !== undefined && entry.exclude !== true;
}
