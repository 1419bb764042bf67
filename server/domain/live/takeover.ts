// A person drives a session while they hold its control, which is a lease with a fence. The agent's input waits meanwhile, or
// is refused; everything else of the agent goes on. One of these for each session that runs here.
import type { ControlRow, ControlRows } from '../../engines/store/rows/controls.ts';
import type { Actor, EventRows } from '../../engines/store/rows/events.ts';
import type { JsonObject } from '../../engines/store/rows/json.ts';
import { type Clock, plus } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';

/** Renewed while the holder's live view is open; what is left when that is gone is the time to come back. */
export const LEASE_MS = 30_000;
/** Input of the agent that waits for a person to be done, and how long. */
export const WAITING_COMMANDS_MAX = 100;
export const WAITING_MS = 30_000;

export type AgentInput = 'queue' | 'refuse';

export interface Control {
  readonly holder: string;
  readonly fence: number;
  readonly expiresAt: Date;
}

/** What the gateway does with a command that is input. */
export type InputVerdict =
  | 'pass'
  | { readonly refuse: string }
  | { readonly wait: Promise<'pass' | { refuse: string }> };

export interface TakeoverParts {
  readonly rows: ControlRows;
  readonly events: Pick<EventRows, 'append'>;
  readonly clock: Clock;
  readonly log: Log;
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
    standing: ControlRow | undefined,
  ) {
    this.#parts = parts;
    this.#session = session;
    this.#agentInput = agentInput;
    if (standing) this.#adopt(standing);
  }

  /** Who controls it now; undefined: the agent. */
  get control(): Control | undefined {
    return this.#control;
  }

  /** Called whenever control changes hands. */
  onChange(listener: () => void): { close(): void } {
    this.#listeners.add(listener);
    return { close: () => void this.#listeners.delete(listener) };
  }

  /** Undefined when somebody else holds it. The fence is durable before this returns; taken again by its holder, it grows. */
  async take(holder: string): Promise<Control | undefined> {
    const { rows, clock } = this.#parts;
    const now = clock.now();
    const expiresAt = plus(now, LEASE_MS);
    const row = await rows.take(this.#session.applicationId, this.#session.id, holder, now, expiresAt);
    if (!row) {
      this.#tell('control.refused', { why: this.#control ? 'held' : 'not_running' });
      return undefined;
    }
    const control = { holder, fence: row.fence, expiresAt };
    if (this.#control?.holder !== holder) this.#tell('control.taken', { fence: row.fence });
    this.#hold(control);
    return control;
  }

  /** False when it is held no more. */
  async renew({ holder, fence }: Control): Promise<boolean> {
    const { rows, clock } = this.#parts;
    const now = clock.now();
    const expiresAt = plus(now, LEASE_MS);
    if (!this.isFresh(fence) || !(await rows.renew(this.#session.id, holder, fence, now, expiresAt))) return false;
    if (this.#control?.fence !== fence) return false; // it ended while this was being written
    this.#hold({ holder, fence, expiresAt });
    return true;
  }

  async giveBack(fence: number): Promise<void> {
    await this.#end(fence, 'control.given_back', { kind: 'viewer' });
  }

  /** Input that a person sent under this fence may still be carried out. */
  isFresh(fence: number): boolean {
    return this.#control?.fence === fence && this.#control.expiresAt > this.#parts.clock.now();
  }

  /** What happens to a command of the agent that is input. */
  judgeInput(method: string): InputVerdict {
    if (!this.#control) return 'pass';
    if (this.#agentInput === 'refuse') return { refuse: refusal(method, 'the session refuses input meanwhile') };
    if (this.#waiting.size >= WAITING_COMMANDS_MAX)
      return { refuse: refusal(method, `${WAITING_COMMANDS_MAX} commands wait for that already`) };
    return { wait: this.#untilGivenBack(method) };
  }

  close(): void {
    this.#closed.abort(new Error('the session leaves'));
    this.#watch.abort();
    for (const go of [...this.#waiting]) go();
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

  /** Whatever the database says: a lease whose time is over holds nobody back. */
  async #end(fence: number, type: 'control.given_back' | 'control.expired', actor: Actor): Promise<void> {
    if (this.#control?.fence !== fence) return;
    const { rows, log } = this.#parts;
    this.#control = undefined;
    this.#watch.abort();
    await rows
      .end(this.#session.id, fence)
      .catch(error => log.warn('control.end_not_written', { reason: reason(error) }));
    this.#tell(type, { fence }, actor);
    if (this.#control) return;
    for (const go of [...this.#waiting]) go();
    this.#changed();
  }

  #untilGivenBack(method: string): Promise<'pass' | { refuse: string }> {
    const free = Promise.withResolvers<'pass' | { refuse: string }>();
    const over = new AbortController();
    const settle = (verdict: 'pass' | { refuse: string }): void => {
      over.abort();
      this.#waiting.delete(go);
      free.resolve(verdict);
    };
    const go = (): void => settle('pass');
    this.#waiting.add(go);
    const late = { refuse: refusal(method, `it waited ${WAITING_MS / 1000} seconds for that to end`) };
    this.#parts.clock.sleep(WAITING_MS, over.signal).then(
      () => settle(late),
      () => {},
    );
    return free.promise;
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  #tell(
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
