// The wiring of the fleet: the lease of this host, and the data that the host publishes about itself.
import { randomUUID } from 'node:crypto';
import { type Config, processFolder } from '../config.ts';
import type { FileStorage } from '../domain/fleet/fits.ts';
import { Fleet } from '../domain/fleet/fleet.ts';
import { secretMarkOf } from '../domain/fleet/host-tokens.ts';
import type { Artifacts } from '../engines/artifacts/artifacts.ts';
import { storageMarkKey } from '../engines/artifacts/keys.ts';
import { readInstallId } from '../engines/slots/install.ts';
import type { Store } from '../engines/store/store.ts';
import { hostIdIn } from '../installation.ts';
import { reason } from '../kit/fault.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Closeable, Scope } from '../kit/scope.ts';
import type { Secret } from '../kit/secret.ts';
import { version } from '../version.ts';
import { onRestarts } from './process-messages.ts';

export interface FleetDeps {
  readonly config: Config;
  readonly secret: Secret;
  readonly scope: Scope;
  readonly store: Store;
  readonly artifacts: Artifacts;
}

/**
 * Announces this host. If the database can be shared with other hosts, the host also joins the fleet, which may refuse
 * it.
 */
export async function openFleet(
  runtime: Runtime,
  { config, secret, scope, store, artifacts }: FleetDeps,
): Promise<Fleet> {
  const { clock, host } = runtime;
  const row = { region: config.regions[0], slots: config.slots, startedAt: clock.now() };
  const ownHost = {
    ...row,
    url: addressOf(config),
    labels: config.hostLabels,
    version: version(),
    secretMark: secretMarkOf(secret),
  };
  const fleet = scope.own(
    new Fleet({
      ...runtime,
      rows: store.hosts,
      storage: storageOf(artifacts),
      joiningHost: ownHost,
      lease: config.lease,
    }),
  );
  if (!config.databaseUrl) {
    await store.hosts.announce({ id: host, ...row });
    return fleet;
  }
  await fleet.join();
  const refreshHosts = (): void => void fleet.refreshHosts();
  scope.own(await store.listen('hosts_changed', refreshHosts, refreshHosts));
  if (config.process) scope.own(keepLeases(runtime, config, store));
  return fleet;
}

/**
 * Extends the lease of a process that the supervisor restarts, so that the process has as much time as a restarting
 * host.
 */
function keepLeases({ log }: Runtime, { sharedDir, lease }: Config, { hosts }: Store): Closeable {
  const onFailure = (error: unknown): void => log.warn('processes.lease_not_kept', { reason: reason(error) });
  return onRestarts((number, endedAt) => {
    const host = hostIdIn(processFolder(sharedDir, number));
    if (host) hosts.markRestarting(host, endedAt, lease.restartMs).catch(onFailure);
  }, onFailure);
}

/**
 * The address at which other hosts reach this one. A Unix socket address gets the install id of the shared folder: two
 * hosts with the same one are processes of one installation on one machine.
 */
function addressOf({ peerUrl, sharedDir }: Config): string {
  if (!peerUrl.startsWith(SOCKET_PREFIX)) return peerUrl;
  const path = peerUrl.slice(SOCKET_PREFIX.length).split('/').map(encodeURIComponent).join('/');
  return `${SOCKET_PREFIX}${path}#${readInstallId(sharedDir)}`;
}

const SOCKET_PREFIX = 'unix:';

function storageOf(artifacts: Artifacts): FileStorage {
  const readMark = async (): Promise<string | undefined> => (await artifacts.read(storageMarkKey))?.toString();
  return {
    kind: artifacts.kind,
    mark: readMark,
    setMark: async () => {
      await artifacts.put(storageMarkKey, singleChunk(Buffer.from(randomUUID())));
      const mark = await readMark();
      if (mark === undefined) throw new Error('the file storage did not return the value that was stored in it');
      return mark;
    },
  };
}

async function* singleChunk(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
