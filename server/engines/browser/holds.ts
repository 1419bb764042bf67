// Who holds new targets. A target that waits for a debugger is let go for everybody by the first who says so, so the
// server's own channels, which hold targets too, say it only when no client holds that target, or right after one said it.
import { isObject, type JsonObject } from '../../kit/json.ts';
import type { Channel } from './mux.ts';

/** A client that holds new targets, and has not been told of this one by then, is not going to be. */
const TOLD_MS = 2_000;
/** What Chromium takes where `Target.setAutoAttach` names no filter. */
const STANDARD_FILTER: readonly JsonObject[] = [{ type: 'browser', exclude: true }, { type: 'tab', exclude: true }, {}];
/** Puppeteer holds the tab, and the page in it only when it has been told of the tab. */
const TAB = 'tab';
const PAGE = 'page';
/** Those may be attached from the root as well as from a page. */
const OF_NO_PAGE: ReadonlySet<string> = new Set(['service_worker', 'shared_worker']);
const WORKERS: ReadonlySet<string> = new Set(['worker', ...OF_NO_PAGE]);

interface Held {
  readonly client: object;
  readonly type: string;
  waits: boolean;
}

interface Waiting {
  readonly targetId: string;
  readonly type: string;
  readonly scope: string | undefined;
  readonly go: () => void;
  timer: NodeJS.Timeout | undefined;
}

export class Holds {
  /** The clients' channels on which new targets are attached and held, with the filter. */
  readonly #holding = new Map<Channel, { client: object; filter: readonly JsonObject[] }>();
  /** The clients' channels on targets, by target. */
  readonly #held = new Map<string, Map<Channel, Held>>();
  /** By the channel of ours that holds it. */
  readonly #waiting = new Map<string, Waiting>();

  /** A client's `Target.setAutoAttach` is on its way to the browser. */
  autoAttach(client: object, channel: Channel, params: JsonObject): void {
    const holds = params.autoAttach === true && params.waitForDebuggerOnStart === true;
    if (!holds) return void this.#holding.delete(channel);
    const filter = Array.isArray(params.filter) ? params.filter.filter(isObject) : STANDARD_FILTER;
    this.#holding.set(channel, { client, filter });
  }

  /** A client was told of a target. */
  told(client: object, channel: Channel, type: string, waits: boolean): void {
    const { targetId } = channel;
    if (targetId === undefined) return;
    const held = this.#held.get(targetId) ?? new Map<Channel, Held>();
    this.#held.set(targetId, held.set(channel, { client, type, waits }));
    this.#lookAt(targetId);
  }

  /**
   * Whether the target of this channel of a client is a worker. Each channel on a worker has its own way to it, so what
   * we say may overtake what the client has said before; the answer shows that the client's commands have taken effect.
   * A page answers later than that, and a window that was opened without an opener never would.
   */
  answersFirst(channel: Channel): boolean {
    return WORKERS.has(this.#heldBy(channel)?.type ?? '');
  }

  /** A client lets a target go: it has said so, or the answer is there where that comes first. */
  resumed(channel: Channel): void {
    const held = this.#heldBy(channel);
    if (!held) return;
    held.waits = false;
    for (const [id, waiting] of [...this.#waiting]) if (waiting.targetId === channel.targetId) this.#go(id, waiting);
  }

  /** A client's channel is gone; what it held is held by it no more. */
  left(channel: Channel): void {
    this.#holding.delete(channel);
    const { targetId } = channel;
    const held = targetId === undefined ? undefined : this.#held.get(targetId);
    if (targetId === undefined || !held?.delete(channel)) return;
    if (held.size === 0) this.#held.delete(targetId);
    this.#lookAt(targetId);
  }

  /**
   * Calls `go` as soon as no client holds the target of this channel of ours: at once, right after the first client that
   * let it go, or when those that held it are gone. `scope` is the target it was told of on; undefined: the browser.
   */
  whenFree(ours: Channel, type: string, scope: string | undefined, go: () => void): void {
    if (ours.targetId === undefined) return go();
    this.#waiting.set(ours.id, { targetId: ours.targetId, type, scope, go, timer: undefined });
    this.#look(ours.id);
  }

  /** Our channel is gone. */
  forget(id: string): void {
    const waiting = this.#waiting.get(id);
    if (waiting?.timer) clearTimeout(waiting.timer);
    this.#waiting.delete(id);
  }

  #lookAt(targetId: string): void {
    for (const [id, waiting] of [...this.#waiting]) if (waiting.targetId === targetId) this.#look(id);
  }

  #look(id: string): void {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    const told = [...(this.#held.get(waiting.targetId)?.values() ?? [])];
    if (told.some(held => held.waits)) return this.#rearm(waiting, undefined);
    const clients = new Set(told.map(held => held.client));
    const untold = this.#holders(waiting).filter(client => !clients.has(client));
    if (untold.length === 0) return this.#go(id, waiting);
    if (waiting.timer === undefined) this.#rearm(waiting, () => this.#expired(id));
  }

  #expired(id: string): void {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    if (this.#tabHeld(waiting)) this.#rearm(waiting, () => this.#expired(id));
    else this.#go(id, waiting);
  }

  /** A client that still holds a tab may not have asked for its page yet. */
  #tabHeld(waiting: Waiting): boolean {
    if (waiting.type !== PAGE) return false;
    const holders = new Set(this.#holders(waiting));
    const waits = ({ type, waits, client }: Held): boolean => type === TAB && waits && holders.has(client);
    return [...this.#held.values()].some(channels => [...channels.values()].some(waits));
  }

  #rearm(waiting: Waiting, expired: (() => void) | undefined): void {
    if (waiting.timer) clearTimeout(waiting.timer);
    waiting.timer = expired && setTimeout(expired, TOLD_MS).unref();
  }

  #go(id: string, waiting: Waiting): void {
    this.forget(id);
    waiting.go();
  }

  /** The clients that would be told of this target and hold it. */
  #holders({ type, scope }: Waiting): readonly object[] {
    return [...this.#holding]
      .filter(([channel]) => channel.targetId === scope || OF_NO_PAGE.has(type))
      .filter(([, { filter }]) => takes(filter, type) || (type === PAGE && takes(filter, TAB)))
      .map(([, { client }]) => client);
  }

  #heldBy(channel: Channel): Held | undefined {
    return channel.targetId === undefined ? undefined : this.#held.get(channel.targetId)?.get(channel);
  }
}

/** The first entry that fits decides; what none fits is left out. */
function takes(filter: readonly JsonObject[], type: string): boolean {
  const entry = filter.find(one => one.type === undefined || one.type === type);
  return entry !== undefined && entry.exclude !== true;
}
