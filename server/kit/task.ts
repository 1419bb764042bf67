// Background work. A task takes no arguments: it compares the actual state with the desired state, and corrects the
// difference. A task may therefore be repeated, or killed at any point.

/**
 * The interval between two runs of most tasks when they are at rest. A longer interval saves processor time on an idle
 * server; a shorter one reduces the delay after a missed trigger.
 */
export const REST_INTERVAL_MS = 20_000;

export interface Task {
  readonly name: string;
  readonly everyMs: number;
  /** The interval at rest. If absent, the task never rests. A trigger runs a task at once even when it is at rest. */
  readonly restMs?: number;
  /**
   * The interval while the process is unused and the task finds nothing to do. It is meant for tasks that are not
   * triggered, because their work becomes due at a certain time.
   */
  readonly unusedMs?: number;
  /**
   * Like `unusedMs`, but the interval also applies while the process holds sessions that neither receive nor send
   * anything. It is meant for tasks that find their work in the database, not in the sessions of this process.
   */
  readonly quietMs?: number;
  /**
   * Whether the task is at rest. By default, a task is at rest when it has found nothing to do for a minute and was not
   * triggered.
   */
  readonly isAtRest?: () => boolean;
  /** Returns counts for the log. Nothing is logged if all are 0. */
  run(): Promise<Readonly<Record<string, number>>>;
}
