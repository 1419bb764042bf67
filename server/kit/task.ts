// Background work. It takes no arguments: it compares the state with what it should be, so it may be repeated or killed anywhere.

export interface Task {
  readonly name: string;
  readonly everyMs: number;
  /** Returns counts for the log. Nothing is logged if all are 0. */
  run(): Promise<Readonly<Record<string, number>>>;
}
