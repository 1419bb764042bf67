// The wiring of the files of sessions: uploads, downloads and links, and their removal.

import { DownloadKeeper, type DownloadKeeperParts } from '../domain/files/download-keeper.ts';
import { Downloads } from '../domain/files/downloads.ts';
import { storeLeftBehindFiles } from '../domain/files/left-behind.ts';
import { sweep } from '../domain/files/retention.ts';
import type { FileFinder } from '../domain/files/served-file.ts';
import { Uploads } from '../domain/files/uploads.ts';
import { filesWatcher } from '../domain/files/watcher.ts';
import type { Limits } from '../domain/limits/limits.ts';
import type { LiveSessions } from '../domain/sessions/live.ts';
import { downloadKey } from '../engines/artifacts/keys.ts';
import { DOWNLOADS_FOLDER } from '../engines/browser/policies.ts';
import type { Runtime } from '../kit/runtime.ts';
import { REST_INTERVAL_MS } from '../kit/task.ts';
import type { Foundation } from './foundation.ts';
import { openSalvage } from './kept-files.ts';
import { retentionOf } from './retention.ts';

const LEFT_BEHIND_TASK = 'take_left_behind';
const LEFT_BEHIND_INTERVAL_MS = 5_000;
const SWEEP_INTERVAL_MS = 600_000;

/**
 * Opens the downloads. Signed links can also serve files of other families. `finders` maps the kind of an object to the
 * function that finds such files.
 */
export const openDownloads = (
  { store, artifacts, outbox, links }: Foundation,
  finders: Readonly<Record<string, FileFinder>>,
): Downloads =>
  new Downloads({
    ...{ rows: store.downloads, sessions: store.sessions, artifacts, outbox, links },
    ...{ keyOf: downloadKey, finders },
  });

export interface FilesDeps {
  readonly liveSessions: LiveSessions;
  readonly limits: Pick<Limits, 'effective'>;
  readonly downloads: Downloads;
  /** Called when a download of a running session has been stored. */
  readonly onDownloadStored: DownloadKeeperParts['onKept'];
}

export async function openFiles(runtime: Runtime, foundation: Foundation, deps: FilesDeps) {
  const { host, clock, log } = runtime;
  const { config, store, staging, outbox, trigger } = foundation;
  const { liveSessions, limits, downloads, onDownloadStored: downloaded } = deps;
  const salvage = await openSalvage(config);
  const { downloadBytes, uploadBytes } = config.sessionFiles;
  const keeper = new DownloadKeeper({
    ...{ rows: store.downloads, limits, host, clock, log },
    ...{ staging, outbox, keyOf: downloadKey, sessionBytesMax: downloadBytes, downloadsFolder: DOWNLOADS_FOLDER },
    onKept: downloaded,
  });
  const uploads = new Uploads({
    ...{ rows: store.uploads, stored: store.storedBytes, sessions: store.sessions, events: store.events },
    ...{ liveSessions, limits, clock, sessionBytesMax: uploadBytes },
  });
  const collectLeftBehind = () => storeLeftBehindFiles({ keeper, salvage, sessions: store.sessions });
  const retention = retentionOf(runtime, foundation);
  return {
    service: { uploads, downloads },
    watcher: filesWatcher({ keeper, salvage, uploads, trigger: () => trigger(LEFT_BEHIND_TASK) }),
    tasks: [
      { name: LEFT_BEHIND_TASK, everyMs: LEFT_BEHIND_INTERVAL_MS, restMs: REST_INTERVAL_MS, run: collectLeftBehind },
    ],
    removal: {
      folder: 'sessions' as const,
      task: { name: 'sweep', everyMs: SWEEP_INTERVAL_MS, run: () => sweep(retention) },
    },
  };
}
