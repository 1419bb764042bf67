// Queues or refuses the commands of the agent while a person has control. Queued commands keep their order, and are
// limited in number and in waiting time.
import type { Clock } from '../../kit/clock.ts';

/** Limits on the agent's queued commands: their number, and the time for which a command waits. */
export const WAITING_COMMANDS_MAX = 100;
export const COMMAND_WAIT_MAX_MS = 30_000;

export type AgentInputMode = 'queue' | 'refuse';

/** The decision about a command of the agent. `wait` resolves when a queued command may pass or is refused. */
export type InputVerdict =
  | 'pass'
  | { readonly refuse: string }
  | { readonly wait: Promise<'pass' | { refuse: string }> };

export class AgentQueue {
  readonly #clock: Clock;
  readonly #passCallbacks = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Decides whether a command of the agent is queued or refused. `handoff` is the id of the hand-off, or undefined if a
   * viewer took control.
   */
  judge(method: string, mode: AgentInputMode, handoff: string | undefined): InputVerdict {
    if (mode === 'refuse')
      return {
        refuse: refusal(method, 'the session is configured to refuse input while a person has control', handoff),
      };
    if (this.#passCallbacks.size >= WAITING_COMMANDS_MAX)
      return { refuse: refusal(method, `${WAITING_COMMANDS_MAX} commands are already queued`, handoff) };
    return {
      wait: this.#waitInQueue(
        refusal(method, `the command was queued for the maximum of ${COMMAND_WAIT_MAX_MS / 1000} seconds`, handoff),
      ),
    };
  }

  /** Passes on the queued commands, in order. */
  release(): void {
    for (const pass of [...this.#passCallbacks]) pass();
  }

  #waitInQueue(lateMessage: string): Promise<'pass' | { refuse: string }> {
    const deferredVerdict = Promise.withResolvers<'pass' | { refuse: string }>();
    const settleController = new AbortController();
    const settle = (verdict: 'pass' | { refuse: string }): void => {
      settleController.abort();
      this.#passCallbacks.delete(pass);
      deferredVerdict.resolve(verdict);
    };
    const pass = (): void => settle('pass');
    this.#passCallbacks.add(pass);
    this.#clock.sleep(COMMAND_WAIT_MAX_MS, settleController.signal).then(
      () => settle({ refuse: lateMessage }),
      () => {},
    );
    return deferredVerdict.promise;
  }
}

const refusal = (method: string, reason: string, handoff: string | undefined): string =>
  handoff === undefined
    ? `${method} is refused: a person controls this session in its live view, and ${reason}. Try again when control is given back.`
    : `${method} is refused: a person controls this session in hand-off ${handoff}, and ${reason}. Wait for Berth.handoffComplete, then try again.`;
