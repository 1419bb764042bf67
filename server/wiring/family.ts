// What each family offers the rest of the server, as far as it has it. Each returns its `service` as well, with its own type.
import type { Watcher } from '../domain/sessions/watchers.ts';
import type { Task } from '../kit/task.ts';

export interface Family {
  readonly watcher?: Watcher;
  readonly tasks?: readonly Task[];
  /** After adoption: takes up what an earlier process left of sessions that have ended. */
  recover?(): Promise<void>;
  /** Ends its work and its streams. The HTTP server closes afterwards, because it waits for its answers to end. */
  close?(): Promise<void> | void;
}
