// Background work. It takes no arguments: it compares the state with what it should be, so it may be repeated or killed anywhere.

/** How long most tasks pause at rest: a compromise of the processor time of an idle server and what runs late if a prompt is missed. */
export const REST_MS = 10_000;

export interface Task {
  readonly name: string;
  readonly everyMs: number;
  /** The interval at rest. Without it the task never rests. A prompt runs it at once. */
  readonly restMs?: number;
  /** Whether it is at rest. Default: for a minute it found nothing to do and was not prompted. */
  readonly isAtRest?: () => boolean;
  /** Returns counts for the log. Nothing is logged if all are 0. */
  run(): Promise<Readonly<Record<string, number>>>;
}
