// Puts extensions together: uploads, the watcher that loads them, and the task that forgets unused ones.
import { join } from 'node:path';
import { Extensions } from '../domain/extensions/extensions.ts';
import { extensionsWatcher } from '../domain/extensions/loading.ts';
import { UNPACKING } from '../domain/extensions/unpacking.ts';
import type { Watcher } from '../domain/sessions/watchers.ts';
import type { Artifacts } from '../engines/artifacts/artifacts.ts';
import { extensionKey } from '../engines/artifacts/keys.ts';
import { ExtensionPackages } from '../engines/extensions/packages.ts';
import type { Store } from '../engines/store/store.ts';
import type { Task } from '../entry/clock/tasks.ts';
import type { Clock } from '../kit/clock.ts';
import type { Log } from '../kit/log.ts';
import { Places } from '../kit/places.ts';

const TIDY_MS = 3_600_000;

export interface ExtensionsWish {
  readonly store: Pick<Store, 'extensions'>;
  readonly artifacts: Artifacts;
  readonly dataDir: string;
  readonly unusedDays: number;
  readonly isJailed: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

export interface OpenedExtensions {
  readonly extensions: Extensions;
  readonly watcher: Watcher;
  readonly tidy: Task;
}

export async function openExtensions(wish: ExtensionsWish): Promise<OpenedExtensions> {
  const { store, artifacts, dataDir, unusedDays, isJailed, clock, log } = wish;
  const packages = new ExtensionPackages(join(dataDir, 'unpacking'));
  await packages.recover();
  const shared = {
    rows: store.extensions,
    artifacts,
    keyOf: extensionKey,
    packages,
    unpacking: new Places(UNPACKING),
    clock,
  };
  const extensions = new Extensions({ ...shared, unusedDays });
  return {
    extensions,
    watcher: extensionsWatcher({ ...shared, isJailed, log }),
    tidy: { name: 'tidy_extensions', everyMs: TIDY_MS, run: () => extensions.removeUnused() },
  };
}
