// The watcher for files: follows downloads while the browser runs, moves complete files out of the box after the
// browser has ended, and lists uploads in the session resource.
import type { SalvagedFiles } from '../../engines/artifacts/salvage.ts';
import { listHostileFolder } from '../../kit/hostile-file.ts';
import type { Watcher } from '../sessions/watchers.ts';
import type { DownloadKeeper } from './download-keeper.ts';
import { DownloadWatch } from './download-watch.ts';
import { failIncompleteDownloads } from './left-behind.ts';
import type { Uploads } from './uploads.ts';
import { completeGuids } from './whole-files.ts';

/** Larger than the number of entries that the downloads folder of a box can contain. */
const FILE_NAMES_MAX = 1_000_000;

export interface FilesWatcherParts {
  readonly keeper: DownloadKeeper;
  readonly salvage: SalvagedFiles;
  readonly uploads: Uploads;
  /** Wakes the task that stores downloads of ended sessions. */
  readonly trigger: () => void;
}

export const filesWatcher = ({ keeper, salvage, uploads, trigger }: FilesWatcherParts): Watcher => ({
  name: 'files',

  attend: async (liveSession, row) => {
    const watch = new DownloadWatch(keeper, liveSession);
    liveSession.browser.onDownloads(watch);
    if (row.status === 'RUNNING') await watch.resume();
    return { leave: () => watch.leave() };
  },

  // Uses file names only, because the end of a session must not depend on the database. Files that are already stored
  // are recognized later.
  salvage: async (row, { folder }) => {
    const { downloadsFolder } = keeper.parts;
    const completeFiles = completeGuids(await listHostileFolder(folder, downloadsFolder, FILE_NAMES_MAX));
    await salvage.moveIn(row.id, `${folder}/${downloadsFolder}`, completeFiles);
    await failIncompleteDownloads(keeper, row, completeFiles);
  },

  ended: trigger,

  describe: async row => ({ uploads: await uploads.readViews(row) }),
});
