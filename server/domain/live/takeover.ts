// Control of a session by a viewer: a lease with a fence. Meanwhile input of the agent is queued or refused; its other
// commands are not affected. There is one instance for each session that runs on this host.

import type { ControlRow, ControlRows } from '../../engines/store/rows/controls.ts';
import type { Actor, EventRows } from '../../engines/store/rows/events.ts';
import { plus } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Runtime } from '../../kit/runtime.ts';

/** Renewed while the holder's live view is open. After a disconnect, the rest is the time to reconnect. */
export const LEASE_MS = 30_000;
/** Limits on the agent's queued input: number of commands, and time. */
export const WAITING_COMMANDS_MAX = 100;
export const WAITING_MS = 30_000;

export type AgentInput = 'queue' | 'refuse';

export interface Control {
  readonly holder: string;
  readonly fence: number;
  readonly expiresAt: Date;
}

/** What the relay does with an input command of the agent. */
export type InputVerdict =
  | 'pass'
  | { readonly refuse: string }
  | { readonly wait: Promise<'pass' | { refuse: string }> };

export interface TakeoverParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly rows: ControlRows;
  readonly events: Pick<EventRows, 'append'>;
}

export class Takeover {
  readonly #parts: TakeoverParts;
  readonly #session: { readonly id: SessionId; readonly applicationId: ApplicationId };
  readonly #agentInput: AgentInput;
  readonly #waiting = new Set<() => void>();
  readonly #listeners = new Set<() => void>();
  readonly #closed = new AbortController();
  #control: Control | undefined;
  #watch = new AbortController();

  constructor(
    parts: TakeoverParts,
    session: { readonly id: SessionId; readonly applicationId: ApplicationId },
    agentInput: AgentInput,
    stored: ControlRow | undefined,
  ) {
    this.#parts = parts;
    this.#session = session;
    this.#agentInput = agentInput;
    if (stored) this.#adopt(stored);
  }

  /** The viewer's control, or undefined while the agent has control. */
  get control(): Control | undefined {
    return this.#control;
  }

  /** Calls the listener when control changes. */
  onChange(listener: () => void): { close(): void } {
    this.#listeners.add(listener);
    return { close: () => void this.#listeners.delete(listener) };
  }

  /**
   * Undefined if another viewer has control. The fence is stored before this returns. A holder that takes control again gets
   * a higher fence.
   */
  async take(holder: string): Promise<Control | undefined> {
    const { rows, clock } = this.#parts;
    const now = clock.now();
    const expiresAt = plus(now, LEASE_MS);
    const row = await rows.take(this.#session.applicationId, this.#session.id, holder, now, expiresAt);
    if (!row) {
      this.#recordEvent('control.refused', { why: this.#control ? 'held' : 'not_running' });
      return undefined;
    }
    const control = { holder, fence: row.fence, expiresAt };
    if (this.#control?.holder !== holder) this.#recordEvent('control.taken', { fence: row.fence });
    this.#hold(control);
    return control;
  }

  /** False if control has ended. */
  async renew({ holder, fence }: Control): Promise<boolean> {
    const { rows, clock } = this.#parts;
    const now = clock.now();
    const expiresAt = plus(now, LEASE_MS);
    if (!this.isFresh(fence) || !(await rows.renew(this.#session.id, holder, fence, now, expiresAt))) return false;
    if (this.#control?.fence !== fence) return false; // it ended during the write
    this.#hold({ holder, fence, expiresAt });
    return true;
  }

  async giveBack(fence: number): Promise<void> {
    await this.#end(fence, 'control.given_back', { kind: 'viewer' });
  }

  /** Whether input that was sent under this fence may still be dispatched. */
  isFresh(fence: number): boolean {
    return this.#control?.fence === fence && this.#control.expiresAt > this.#parts.clock.now();
  }

  /** Decides what happens to an input command of the agent. */
  judgeInput(method: string): InputVerdict {
    if (!this.#control) return 'pass';
    if (this.#agentInput === 'refuse')
      return { refuse: refusal(method, 'the session is set to refuse input meanwhile') };
    if (this.#waiting.size >= WAITING_COMMANDS_MAX)
      return { refuse: refusal(method, `${WAITING_COMMANDS_MAX} commands are queued already`) };
    return { wait: this.#untilGivenBack(method) };
  }

  close(): void {
    this.#closed.abort(new Error('the session leaves'));
    this.#watch.abort();
    for (const pass of [...this.#waiting]) pass();
    this.#listeners.clear();
  }

  #adopt({ holder, fence, expiresAt }: ControlRow): void {
    if (holder !== undefined && expiresAt !== undefined) this.#hold({ holder, fence, expiresAt });
  }

  #hold(control: Control): void {
    const changed = this.#control?.holder !== control.holder || this.#control.fence !== control.fence;
    this.#control = control;
    this.#watch.abort();
    this.#watch = new AbortController();
    void this.#endWhenDue(control, AbortSignal.any([this.#watch.signal, this.#closed.signal]));
    if (changed) this.#changed();
  }

  async #endWhenDue({ fence, expiresAt }: Control, signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    while (!signal.aborted) {
      const leftMs = expiresAt.getTime() - clock.now().getTime();
      if (leftMs <= 0) return this.#end(fence, 'control.expired', { kind: 'clock' });
      await clock.sleep(leftMs, signal).catch(() => {});
    }
  }

  /** An expired lease ends here even if the database cannot be written. */
  async #end(fence: number, type: 'control.given_back' | 'control.expired', actor: Actor): Promise<void> {
    if (this.#control?.fence !== fence) return;
    const { rows, log } = this.#parts;
    this.#control = undefined;
    this.#watch.abort();
    await rows
      .end(this.#session.id, fence)
      .catch(error => log.warn('control.end_not_written', { reason: reason(error) }));
    this.#recordEvent(type, { fence }, actor);
    if (this.#control) return;
    for (const pass of [...this.#waiting]) pass();
    this.#changed();
  }

  #untilGivenBack(method: string): Promise<'pass' | { refuse: string }> {
    const free = Promise.withResolvers<'pass' | { refuse: string }>();
    const settled = new AbortController();
    const settle = (verdict: 'pass' | { refuse: string }): void => {
      settled.abort();
      this.#waiting.delete(pass);
      free.resolve(verdict);
    };
    const pass = (): void => settle('pass');
    this.#waiting.add(pass);
    const late = { refuse: refusal(method, `it was queued for ${WAITING_MS / 1000} seconds`) };
    this.#parts.clock.sleep(WAITING_MS, settled.signal).then(
      () => settle(late),
      () => {},
    );
    return free.promise;
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  #recordEvent(
    type: 'control.taken' | 'control.given_back' | 'control.expired' | 'control.refused',
    detail: JsonObject,
    actor: Actor = { kind: 'viewer' },
  ): void {
    const { events, clock, log } = this.#parts;
    events
      .append(this.#session.id, { type, at: clock.now(), actor, detail })
      .catch(error => log.warn('session.event_not_written', { sessionId: this.#session.id, error }));
  }
}

const refusal = (method: string, why: string): string =>
  `${method} is refused: a person controls this session in its live view, and ${why}. Try again when control is given back.`;
