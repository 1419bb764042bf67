// The parts that a family offers to the rest of the server. Each family also returns its `service`, with its own type.
import type { Watcher } from '../domain/sessions/watchers.ts';
import type { ArtifactFolder } from '../engines/artifacts/keys.ts';
import type { Task } from '../kit/task.ts';

export interface Family {
  readonly watcher?: Watcher;
  readonly tasks?: readonly Task[];
  /** The folder of stored files that the family fills, and the task that removes its files when they are due. */
  readonly removal?: { readonly folder: ArtifactFolder; readonly task: Task };
  /** Called after adoption: continues the work on ended sessions that an earlier process left unfinished. */
  recover?(): Promise<void>;
  /**
   * Ends the family's work and streams. The HTTP server is closed afterwards, because its close waits until all
   * responses have ended.
   */
  close?(): Promise<void> | void;
}

/** All tasks of a part of the server. */
export const tasksOf = ({ tasks = [], removal }: Pick<Family, 'tasks' | 'removal'>): readonly Task[] =>
  removal ? [...tasks, removal.task] : tasks;
