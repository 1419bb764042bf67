// The wiring of extensions: uploads, the watcher that loads them, and the task that deletes unused ones.
import { join } from 'node:path';
import { Extensions } from '../domain/extensions/extensions.ts';
import { extensionsWatcher } from '../domain/extensions/extensions-watcher.ts';
import { UNPACKING_LIMITS } from '../domain/extensions/unpacking.ts';
import { extensionKey } from '../engines/artifacts/keys.ts';
import { ExtensionPackages } from '../engines/extensions/packages.ts';
import type { Runtime } from '../kit/runtime.ts';
import { WorkLimiter } from '../kit/work-limiter.ts';
import type { Foundation } from './foundation.ts';

const TIDY_INTERVAL_MS = 3_600_000;

export async function openExtensions({ clock, log }: Runtime, { config, store, artifacts, slots }: Foundation) {
  const packages = new ExtensionPackages(join(config.dataDir, 'unpacking'));
  await packages.recover();
  const sharedParts = {
    rows: store.extensions,
    artifacts,
    keyOf: extensionKey,
    packages,
    unpackLimiter: new WorkLimiter(UNPACKING_LIMITS),
    clock,
  };
  const service = new Extensions({ ...sharedParts, unusedDays: config.extensionDays });
  return {
    service,
    watcher: extensionsWatcher({ ...sharedParts, isJailed: slots.form !== 'process', log }),
    removal: {
      folder: 'extensions' as const,
      task: { name: 'tidy_extensions', everyMs: TIDY_INTERVAL_MS, run: () => service.removeUnused() },
    },
  };
}
