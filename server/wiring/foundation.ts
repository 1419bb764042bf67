// The parts that all families use: the database, the slots, the storage of files, worker threads. Opened before the
// families and closed after them.
import type { Config } from '../config.ts';
import { Audit } from '../domain/audit/audit.ts';
import { Links } from '../domain/files/links.ts';
import type { Fleet } from '../domain/fleet/fleet.ts';
import { SharedTallies } from '../domain/limits/shared-tally.ts';
import type { SigningKeys } from '../domain/signing/signing-keys.ts';
import { OutboundEndpoints } from '../engines/egress/departures.ts';
import type { OutboundCalls } from '../engines/egress/outbound-calls/outbound-calls.ts';
import { openSlots } from '../engines/slots/open-slots.ts';
import type { Slots } from '../engines/slots/slots.ts';
import { lockDataFolder } from '../engines/store/data-folder.ts';
import type { Store } from '../engines/store/store.ts';
import type { Vault } from '../engines/vault/vault.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Scope } from '../kit/scope.ts';
import type { Secret } from '../kit/secret.ts';
import type { Task } from '../kit/task.ts';
import { WorkerPool } from '../kit/worker-pool.ts';
import { openFleet } from './fleet.ts';
import { type KeptFiles, openKeptFiles } from './kept-files.ts';
import { openOutbound } from './outbound.ts';
import { PeerTls } from './peer-tls.ts';
import { openDatabase } from './runtime.ts';
import { slotOptions } from './slots.ts';
import { openVault, signingKeys } from './vault.ts';

const FOLDER_LOCK_TIMEOUT_MS = 10_000;

export interface Basics {
  readonly config: Config;
  /** The secret of the installation. */
  readonly secret: Secret;
  /** When the server ends, closes everything that families do not close themselves. */
  readonly scope: Scope;
  /** Runs the task with this name after `ms` milliseconds, or at once if `ms` is absent. */
  readonly trigger: (task: string, ms?: number) => void;
}

export interface Foundation extends Basics, KeptFiles {
  readonly store: Store;
  /** This host as one of the hosts of the fleet. */
  readonly fleet: Fleet;
  readonly peerTls: PeerTls;
  readonly audit: Audit;
  /** Counts attempts across all hosts. */
  readonly tallies: SharedTallies;
  readonly vault: Vault;
  readonly signingKeys: SigningKeys;
  readonly slots: Slots;
  readonly workers: WorkerPool;
  /** The local ends of the network connections of all sessions. */
  readonly outboundEndpoints: OutboundEndpoints;
  /** Requests to user-supplied addresses. */
  readonly outbound: OutboundCalls;
  /** Signed links to files. */
  readonly links: Links;
  readonly tasks: readonly Task[];
}

export async function openFoundation(runtime: Runtime, basics: Basics): Promise<Foundation> {
  const { config, secret, scope } = basics;
  const { clock, log } = runtime;
  const peerTls = new PeerTls(config.peerTls, log);
  const outbound = openOutbound(config, clock);
  // The embedded database locks the data folder. With an external database, the server locks the folder itself, because
  // only one server may use a data folder. If there are several processes, their supervisor locks the folder of the
  // first one.
  if (config.databaseUrl && config.process?.number !== 1)
    scope.own(await lockDataFolder(config.dataDir, { waitMs: FOLDER_LOCK_TIMEOUT_MS }));
  const store = scope.own(await openDatabase(runtime, config));
  const vault = await openVault(config, store, clock);
  const slots = scope.own(await openSlots(slotOptions(config, runtime)));
  const keptFiles = await openKeptFiles(runtime, { ...basics, store });
  const fleet = await openFleet(runtime, { ...basics, store, artifacts: keptFiles.artifacts });
  await keptFiles.recover();
  const links = new Links(secret, config.publicUrl, clock);
  const workers = scope.own(new WorkerPool());
  const audit = new Audit(store, clock);
  const tallies = new SharedTallies({ clock, log, rows: store.attempts, isAlone: () => fleet.isAlone });
  const ownSigningKeys = signingKeys(runtime, store, vault);
  return {
    ...basics,
    ...keptFiles,
    tasks: [...keptFiles.tasks, ...peerTls.tasks],
    peerTls,
    audit,
    tallies,
    vault,
    signingKeys: ownSigningKeys,
    store,
    fleet,
    slots,
    workers,
    links,
    outbound,
    outboundEndpoints: new OutboundEndpoints(),
  };
}
