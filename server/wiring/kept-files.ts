// The wiring of file storage: artifacts in the configured bucket or in the data folder, and the outbox in front of
// them. The server and `berth sweep` open the same storage.
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { Outbox } from '../domain/files/outbox.ts';
import type { Artifacts } from '../engines/artifacts/artifacts.ts';
import { openDisk } from '../engines/artifacts/disk.ts';
import { SalvagedFiles } from '../engines/artifacts/salvage.ts';
import { Staging } from '../engines/artifacts/staging.ts';
import type { Store } from '../engines/store/store.ts';
import type { Clock } from '../kit/clock.ts';
import { reason } from '../kit/fault.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Scope } from '../kit/scope.ts';
import { REST_INTERVAL_MS, type Task } from '../kit/task.ts';
import { removeAbandonedBackupFolders } from './backup-folder.ts';

const OUTBOX_TASK = 'outbox';
const OUTBOX_INTERVAL_MS = 1_000;

export interface KeptFilesDeps {
  readonly config: Pick<Config, 's3' | 'dataDir' | 'sharedDir' | 'process'>;
  readonly store: Pick<Store, 'outbox'>;
  readonly scope: Scope;
  readonly trigger: (task: string) => void;
}

export interface KeptFiles {
  readonly artifacts: Artifacts;
  /** Holds files until they are recorded in the outbox. */
  readonly staging: Staging;
  readonly outbox: Outbox;
  readonly tasks: readonly Task[];
  /**
   * Called at the start of a server: removes the unfinished files of an earlier process, and folders of killed backups.
   */
  recover(): Promise<void>;
}

export async function openKeptFiles(runtime: Runtime, deps: KeptFilesDeps): Promise<KeptFiles> {
  const { host, clock, log } = runtime;
  const { config, store, scope } = deps;
  const artifacts = scope.own(await openArtifacts(config, clock));
  const staging = await Staging.open(config.dataDir);
  const trigger = (): void => deps.trigger(OUTBOX_TASK);
  const outbox = scope.own(new Outbox({ rows: store.outbox, artifacts, staging, host, clock, log, trigger }));
  return {
    artifacts,
    staging,
    outbox,
    tasks: [
      { name: OUTBOX_TASK, everyMs: OUTBOX_INTERVAL_MS, restMs: REST_INTERVAL_MS, run: () => outbox.reconcile() },
    ],
    recover: async () => {
      await removeAbandonedBackupFolders(config.sharedDir).catch(error =>
        log.warn('backup.leftovers_not_removed', { reason: reason(error) }),
      );
      await artifacts.recover().catch(error => log.warn('artifacts.recover_failed', { reason: reason(error) }));
      const removedFiles = await outbox.recover();
      if (removedFiles > 0) log.info('outbox.recovered', { removedFiles });
    },
  };
}

/** The S3 client is loaded only if a bucket is configured. */
async function openArtifacts({ s3, sharedDir, process }: KeptFilesDeps['config'], clock: Clock): Promise<Artifacts> {
  if (!s3) return openDisk(sharedDir, process?.number);
  const { openS3 } = await import('../engines/artifacts/s3.ts');
  return openS3(s3, clock);
}

/** Opens the folder in which the downloads of ended sessions wait until they are stored. */
export const openSalvage = ({ dataDir }: Pick<Config, 'dataDir'>): Promise<SalvagedFiles> =>
  SalvagedFiles.open(join(dataDir, 'staging', 'downloads'));
