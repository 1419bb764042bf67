// The wiring of contexts: their service, their watcher, and the task that saves contexts and removes expired versions.
import { join } from 'node:path';
import { ContextLoader } from '../domain/contexts/context-loader.ts';
import { ContextWatcher } from '../domain/contexts/context-watcher.ts';
import { Contexts } from '../domain/contexts/contexts.ts';
import { Exports } from '../domain/contexts/export.ts';
import { Saver } from '../domain/contexts/saver.ts';
import { StoredVersions } from '../domain/contexts/stored-versions.ts';
import { contextCookiesKey, contextVersionKey } from '../engines/artifacts/keys.ts';
import { Profiles } from '../engines/profiles/profiles.ts';
import type { Runtime } from '../kit/runtime.ts';
import { REST_INTERVAL_MS } from '../kit/task.ts';
import type { Foundation } from './foundation.ts';
import { STORAGE_STATE } from './storage-state-job.ts';
import { contextKeys } from './vault.ts';

const CONTEXTS_TASK = 'contexts';
const SAVE_INTERVAL_MS = 2_000;

export function openContexts({ host, clock, log }: Runtime, foundation: Foundation) {
  const { config, secret, vault, store, artifacts, slots, workers } = foundation;
  const { contexts: rows, contextUses: uses, sessions, events } = store;
  const keys = contextKeys(vault, secret);
  const profiles = new Profiles({ root: join(config.dataDir, 'contexts'), keys, folders: slots });
  const keyFunctions = { archiveKey: contextVersionKey, cookiesKey: contextCookiesKey };
  const storedVersions = new StoredVersions({ artifacts, profiles, ...keyFunctions });
  const loader = new ContextLoader({ rows, uses, events, storedVersions, profiles, clock, log });
  const saver = new Saver({ rows, uses, sessions, storedVersions, profiles, host, clock, log });
  const trigger = (): void => foundation.trigger(CONTEXTS_TASK);
  const folder = join(config.dataDir, 'exports');
  const exports = new Exports({ storedVersions, profiles, workers, job: STORAGE_STATE, folder, clock });
  return {
    service: new Contexts({ rows, storedVersions, profiles, exports, clock, trigger }),
    watcher: new ContextWatcher({
      rows,
      uses,
      loader,
      storedVersions,
      profiles,
      host,
      clock,
      log,
      trigger,
    }),
    removal: {
      folder: 'contexts' as const,
      task: { name: CONTEXTS_TASK, everyMs: SAVE_INTERVAL_MS, restMs: REST_INTERVAL_MS, run: () => saver.reconcile() },
    },
    recover: () => saver.recover(),
    close: () => saver.close(),
  };
}
