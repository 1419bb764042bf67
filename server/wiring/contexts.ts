// The wiring of contexts: what they are made of, and what the rest of the server needs of them.
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { ContextWatcher } from '../domain/contexts/context-watcher.ts';
import { Contexts } from '../domain/contexts/contexts.ts';
import { Exports } from '../domain/contexts/export.ts';
import { Loading } from '../domain/contexts/loading.ts';
import { Saver } from '../domain/contexts/saver.ts';
import { StoredVersions } from '../domain/contexts/stored-versions.ts';
import type { Artifacts } from '../engines/artifacts/artifacts.ts';
import { contextCookiesKey, contextVersionKey } from '../engines/artifacts/keys.ts';
import { Profiles } from '../engines/profiles/profiles.ts';
import type { Slots } from '../engines/slots/slots.ts';
import type { Store } from '../engines/store/store.ts';
import type { Task } from '../entry/clock/tasks.ts';
import type { Installation } from '../installation.ts';
import type { Clock } from '../kit/clock.ts';
import type { Log } from '../kit/log.ts';
import type { Workers } from '../kit/worker-pool.ts';
import { STORAGE_STATE } from './storage-state-job.ts';

const TEND_MS = 2_000;

export interface ContextsWish extends Installation {
  readonly config: Pick<Config, 'dataDir'>;
  readonly store: Store;
  readonly artifacts: Artifacts;
  readonly slots: Slots;
  readonly workers: Workers;
  readonly clock: Clock;
  readonly log: Log;
  readonly lookIn: (task: Task, ms: number) => void;
}

export function openContexts({
  config,
  store,
  artifacts,
  slots,
  workers,
  host,
  secret,
  clock,
  log,
  lookIn,
}: ContextsWish) {
  const { contexts: rows, contextUses: uses, sessions, events } = store;
  const profiles = new Profiles({ root: join(config.dataDir, 'contexts'), secret, folders: slots });
  const keys = { archiveKey: contextVersionKey, cookiesKey: contextCookiesKey };
  const stored = new StoredVersions({ artifacts, profiles, ...keys });
  const loading = new Loading({ rows, uses, events, stored, profiles, clock, log });
  const saver = new Saver({ rows, uses, sessions, stored, profiles, host, clock, log });
  const task: Task = { name: 'contexts', everyMs: TEND_MS, run: () => saver.tend() };
  const prompt = (): void => lookIn(task, 0);
  const watcher = new ContextWatcher({ rows, uses, loading, stored, profiles, host, clock, log, prompt });
  const folder = join(config.dataDir, 'exports');
  const exports = new Exports({ stored, profiles, workers, job: STORAGE_STATE, folder, clock });
  return { contexts: new Contexts({ rows, stored, profiles, exports, clock, prompt }), watcher, saver, task };
}
