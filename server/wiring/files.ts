// Wiring of what is kept: artifacts in the configured bucket or the data folder, the outbox that leads there, and the files
// of sessions: uploads, downloads, links, and what goes when its time is over.
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { Downloads } from '../domain/files/downloads.ts';
import { Keeper, type KeeperParts } from '../domain/files/keeper.ts';
import { takeLeftBehind } from '../domain/files/left-behind.ts';
import type { Links } from '../domain/files/links.ts';
import { Outbox } from '../domain/files/outbox.ts';
import { dueTimes, type Forget, type RetentionParts, sweep } from '../domain/files/retention.ts';
import type { FileFinder } from '../domain/files/served-file.ts';
import { Uploads } from '../domain/files/uploads.ts';
import { filesWatcher } from '../domain/files/watcher.ts';
import type { Limits } from '../domain/limits/limits.ts';
import type { LiveSessions } from '../domain/sessions/live.ts';
import type { Watcher } from '../domain/sessions/watchers.ts';
import type { Artifacts } from '../engines/artifacts/artifacts.ts';
import { openDisk } from '../engines/artifacts/disk.ts';
import { downloadKey, sessionPrefix } from '../engines/artifacts/keys.ts';
import { SalvagedFiles } from '../engines/artifacts/salvage.ts';
import { Staging } from '../engines/artifacts/staging.ts';
import { DOWNLOADS } from '../engines/browser/policies.ts';
import type { Store } from '../engines/store/store.ts';
import type { Task } from '../entry/clock/tasks.ts';
import type { FileVerbs } from '../entry/http/files.ts';
import type { Clock } from '../kit/clock.ts';
import { reason } from '../kit/fault.ts';
import type { HostId } from '../kit/ids.ts';
import type { Log } from '../kit/log.ts';
import type { Scope } from '../kit/scope.ts';

const OUTBOX_MS = 1_000;
const LEFT_BEHIND_MS = 5_000;
const SWEEP_MS = 600_000;

export interface ArtifactsWish {
  readonly config: Config;
  readonly store: Store;
  readonly host: HostId;
  readonly clock: Clock;
  readonly log: Log;
  readonly scope: Scope;
  readonly lookIn: (task: Task, ms: number) => void;
}

/** What contexts, recordings and logs store through, and files themselves. */
export interface KeptArtifacts {
  readonly artifacts: Artifacts;
  /** For files on their way into the outbox. */
  readonly staging: Staging;
  readonly outbox: Outbox;
  readonly tasks: readonly Task[];
}

export async function openKept({
  config,
  store,
  host,
  clock,
  log,
  scope,
  lookIn,
}: ArtifactsWish): Promise<KeptArtifacts> {
  const artifacts = scope.own(await openArtifacts(config, clock));
  await artifacts.recover().catch(error => log.warn('artifacts.recover_failed', { reason: reason(error) }));
  const staging = await openStaging(config);
  const prompt = (): void => lookIn(task, 0);
  const outbox = scope.own(new Outbox({ rows: store.outbox, artifacts, staging, host, clock, log, prompt }));
  const task: Task = { name: 'outbox', everyMs: OUTBOX_MS, run: () => outbox.tend() };
  const leftOver = await outbox.recover();
  if (leftOver > 0) log.info('outbox.recovered', { leftOver });
  return { artifacts, staging, outbox, tasks: [task] };
}

/** The client of S3 is loaded only where a bucket is configured. */
export async function openArtifacts({ s3, dataDir }: Pick<Config, 's3' | 'dataDir'>, clock: Clock): Promise<Artifacts> {
  if (!s3) return openDisk(join(dataDir, 'artifacts'));
  const { openS3 } = await import('../engines/artifacts/s3.ts');
  return openS3(s3, clock);
}

export interface FilesWish extends Omit<ArtifactsWish, 'scope'> {
  readonly kept: KeptArtifacts;
  readonly lives: LiveSessions;
  readonly limits: Pick<Limits, 'effective'>;
  readonly links: Links;
  /** Who else has bytes for signed links, by the kind of their objects. */
  readonly finders: Readonly<Record<string, FileFinder>>;
  /** A download of a running session has been taken in. */
  readonly downloaded: KeeperParts['kept'];
  /** Who else has rows about files that go with the session's. */
  readonly forgets: readonly Forget[];
}

export interface Files {
  readonly watcher: Watcher;
  readonly verbs: FileVerbs;
  /** A link to a download that works without a key. */
  readonly linkTo: Downloads['linkTo'];
  readonly tasks: readonly Task[];
}

export async function openFiles(wish: FilesWish): Promise<Files> {
  const { config, store, kept, lives, limits, links, host, clock, log, lookIn } = wish;
  const { staging, outbox } = kept;
  const salvage = await openSalvage(config);
  const { downloadBytes, uploadBytes } = config.sessionFiles;
  const keeper = new Keeper({
    ...{ rows: store.downloads, stored: store.storedBytes, events: store.events, limits, host, clock, log },
    ...{ staging, outbox, keyOf: downloadKey, sessionBytesMax: downloadBytes, downloadsFolder: DOWNLOADS },
    kept: wish.downloaded,
  });
  const uploads = new Uploads({
    ...{ rows: store.uploads, stored: store.storedBytes, sessions: store.sessions, events: store.events },
    ...{ lives, limits, clock, sessionBytesMax: uploadBytes },
  });
  const downloads = new Downloads({
    ...{ rows: store.downloads, sessions: store.sessions, artifacts: kept.artifacts, outbox, links },
    ...{ keyOf: downloadKey, finders: wish.finders },
  });
  const leftBehind: Task = {
    name: 'take_left_behind',
    everyMs: LEFT_BEHIND_MS,
    run: () => takeLeftBehind({ keeper, salvage, sessions: store.sessions }),
  };
  const retention = retentionParts({ store, kept, forgets: wish.forgets, clock, log });
  const sweepOld: Task = { name: 'sweep', everyMs: SWEEP_MS, run: () => sweep(retention) };
  return {
    watcher: filesWatcher({ keeper, salvage, uploads, prompt: () => lookIn(leftBehind, 0) }),
    verbs: { uploads, downloads },
    linkTo: row => downloads.linkTo(row),
    tasks: [leftBehind, sweepOld],
  };
}

export const openStaging = ({ dataDir }: Pick<Config, 'dataDir'>): Promise<Staging> =>
  Staging.open(join(dataDir, 'staging', 'outbox'));

export const openSalvage = ({ dataDir }: Pick<Config, 'dataDir'>): Promise<SalvagedFiles> =>
  SalvagedFiles.open(join(dataDir, 'staging', 'downloads'));

export const retentionParts = (wish: {
  readonly store: Store;
  readonly kept: Pick<KeptArtifacts, 'artifacts' | 'outbox'>;
  readonly forgets: readonly Forget[];
  readonly clock: Clock;
  readonly log: Log;
}): RetentionParts => ({
  ...{ rows: wish.store.retention, waiting: wish.store.outbox, prefixOf: sessionPrefix },
  ...{ artifacts: wish.kept.artifacts, outbox: wish.kept.outbox, forgets: wish.forgets },
  ...{ clock: wish.clock, log: wish.log },
});

export const dueTimesOf =
  ({ kept }: Pick<Config, 'kept'>) =>
  (endedAt: Date) =>
    dueTimes(kept, endedAt);
