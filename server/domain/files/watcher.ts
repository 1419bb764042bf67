// Files as sessions meet them: downloads are watched while the browser runs, moved aside when it is dead; uploads are told
// of with the session.
import type { Salvage } from '../../engines/artifacts/salvage.ts';
import { namesInHostile } from '../../kit/hostile-file.ts';
import type { Watcher } from '../sessions/watchers.ts';
import { DownloadWatch } from './download-watch.ts';
import type { Keeper } from './keeper.ts';
import { failPartial } from './left-behind.ts';
import type { Uploads } from './uploads.ts';
import { wholeAmong } from './whole-files.ts';

/** More than a box's folder may hold entries. */
const NAMES_MAX = 1_000_000;

export interface FilesWatcherParts {
  readonly keeper: Keeper;
  readonly salvage: Salvage;
  readonly uploads: Uploads;
  /** Something of a dead session may wait to be taken in. */
  readonly prompt: () => void;
}

export const filesWatcher = ({ keeper, salvage, uploads, prompt }: FilesWatcherParts): Watcher => ({
  name: 'files',

  attend: async (live, row) => {
    const watch = new DownloadWatch(keeper, live);
    live.browser.tellOfDownloads(watch);
    if (row.status === 'RUNNING') await watch.resume();
    return { leave: () => watch.leave() };
  },

  // Names only, and no rows: an end must not depend on the database. What was taken already is told apart later.
  salvage: async (row, { folder }) => {
    const { downloadsFolder } = keeper.parts;
    const whole = wholeAmong(await namesInHostile(folder, downloadsFolder, NAMES_MAX));
    await salvage.moveIn(row.id, `${folder}/${downloadsFolder}`, whole);
    await failPartial(keeper, row, whole);
  },

  ended: prompt,

  describe: async row => ({ uploads: await uploads.of(row) }),
});
