// The wiring that removes the data of ended sessions, for the server, `berth sweep` and `berth stop`.
import type { Config } from '../config.ts';
import { dueTimes, type RetentionParts, type RowCleanup } from '../domain/files/retention.ts';
import { sessionPrefix } from '../engines/artifacts/keys.ts';
import type { Store } from '../engines/store/store.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { KeptFiles } from './kept-files.ts';
import { forgetRecording } from './recordings.ts';

export interface RetentionDeps extends Pick<KeptFiles, 'artifacts' | 'outbox'> {
  readonly store: Store;
}

/** A family that stores rows about a session's files adds a function to `rowCleanups` that deletes these rows. */
export function retentionOf({ clock, log }: Runtime, { store, artifacts, outbox }: RetentionDeps): RetentionParts {
  const rowCleanups: readonly RowCleanup[] = [forgetRecording(store)];
  const { retention: rows, outbox: outboxRows } = store;
  return { rows, outboxRows, prefixOf: sessionPrefix, artifacts, outbox, rowCleanups, clock, log };
}

/** Returns a function that computes when the files and the row of a session that ended at `endedAt` are due for removal. */
export const dueTimesOf =
  ({ retention }: Pick<Config, 'retention'>) =>
  (endedAt: Date) =>
    dueTimes(retention, endedAt);
