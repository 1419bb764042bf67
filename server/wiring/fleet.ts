// The wiring of the fleet: the lease of this host, and what it says about itself.
import { randomUUID } from 'node:crypto';
import type { Config } from '../config.ts';
import type { FileStorage } from '../domain/fleet/fits.ts';
import { Fleet } from '../domain/fleet/fleet.ts';
import { markOf } from '../domain/fleet/host-tokens.ts';
import type { Artifacts } from '../engines/artifacts/artifacts.ts';
import { storageMarkKey } from '../engines/artifacts/keys.ts';
import type { Store } from '../engines/store/store.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Scope } from '../kit/scope.ts';
import type { Secret } from '../kit/secret.ts';
import { version } from '../version.ts';

export interface FleetDeps {
  readonly config: Config;
  readonly secret: Secret;
  readonly scope: Scope;
  readonly store: Store;
  readonly artifacts: Artifacts;
}

/** Announces this host. With a database that other hosts can use, it takes a lease, or is refused. */
export async function openFleet(
  runtime: Runtime,
  { config, secret, scope, store, artifacts }: FleetDeps,
): Promise<Fleet> {
  const { clock, host } = runtime;
  const row = { region: config.regions[0], slots: config.slots, startedAt: clock.now() };
  const own = {
    ...row,
    url: config.peerUrl,
    labels: config.hostLabels,
    version: version(),
    secretMark: markOf(secret),
  };
  const fleet = scope.own(
    new Fleet({ ...runtime, rows: store.hosts, storage: storageOf(artifacts), own, lease: config.lease }),
  );
  if (!config.databaseUrl) {
    await store.hosts.announce({ id: host, ...row });
    return fleet;
  }
  await fleet.join();
  const look = (): void => void fleet.look();
  scope.own(await store.listen('hosts_changed', look, look));
  return fleet;
}

function storageOf(artifacts: Artifacts): FileStorage {
  const read = async (): Promise<string | undefined> => (await artifacts.read(storageMarkKey))?.toString();
  return {
    kind: artifacts.kind,
    mark: read,
    setMark: async () => {
      await artifacts.put(storageMarkKey, once(Buffer.from(randomUUID())));
      const mark = await read();
      if (mark === undefined) throw new Error('the file storage does not return what was stored in it');
      return mark;
    },
  };
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
