// Background work. It takes no arguments: it compares the state with what it should be, so it may be repeated, or
// killed at any point.

/**
 * How long most tasks pause at rest: a compromise between the processor time of an idle server and the delay of work if
 * a prompt is missed.
 */
export const REST_MS = 10_000;

export interface Task {
  readonly name: string;
  readonly everyMs: number;
  /** The interval at rest. Without it the task never rests. A prompt runs it at once. */
  readonly restMs?: number;
  /**
   * Whether the task is at rest. By default, it is when it has found nothing to do for a minute and was not prompted.
   */
  readonly isAtRest?: () => boolean;
  /** Returns counts for the log. Nothing is logged if all are 0. */
  run(): Promise<Readonly<Record<string, number>>>;
}
