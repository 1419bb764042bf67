// The wiring of the host: its readings come from the operating system and from the parts of the server.
import { availableParallelism } from 'node:os';
import { HOST_SAMPLE_INTERVAL_MS, Host } from '../domain/host/host.ts';
import { Hosts } from '../domain/host/hosts.ts';
import type { LiveSessions } from '../domain/sessions/live.ts';
import { thisMachine } from '../engines/slots/capacity.ts';
import { examine } from '../engines/slots/doctor.ts';
import { IdleMemory } from '../kit/idle-memory.ts';
import { processorShare } from '../kit/processor-share.ts';
import type { Runtime } from '../kit/runtime.ts';
import { version } from '../version.ts';
import type { Admission } from './admission.ts';
import type { Foundation } from './foundation.ts';
import { readiness } from './readiness.ts';
import type { OpenedSessions } from './sessions.ts';
import { slotOptions } from './slots.ts';

const RELEASE_MEMORY_INTERVAL_MS = 60_000;

export interface HostDeps {
  readonly admission: Pick<Admission, 'queue' | 'line'>;
  readonly sessions: Pick<OpenedSessions, 'pool'>;
  readonly liveSessions: LiveSessions;
}

export function openHost(runtime: Runtime, foundation: Foundation, { admission, sessions, liveSessions }: HostDeps) {
  const { config, store, slots } = foundation;
  const { memoryBytes } = thisMachine();
  const cpuShare = processorShare();
  const service = new Host({
    clock: runtime.clock,
    accounts: store.accounts,
    facts: {
      ...{ version: version(), nodeVersion: process.versions.node, processors: availableParallelism(), memoryBytes },
      ...{ sessionsMax: config.slots, isolation: slots.form, missing: [...slots.missingFeatures] },
      engines: [...slots.engines.keys()],
    },
    read: async () => ({
      cpuShare: cpuShare(),
      memoryUsedBytes: Math.max(0, memoryBytes - process.availableMemory()),
      serverBytes: process.memoryUsage.rss(),
      slotsUsed: slots.usedCount,
      sessions: liveSessions.all.length,
      warm: sessions.pool.size,
      waiting: admission.queue.size + admission.line.size,
      clients: liveSessions.all.reduce((sum, { clients }) => sum + clients, 0),
      diskFreeBytes: (await slots.readDiskRoom()).freeBytes,
    }),
    readChecks: async () => ({ checks: [...(await readiness(foundation, sessions.pool)).checks] }),
    examine: async () => [...(await examine(slotOptions(config, runtime)))],
  });
  const hosts = new Hosts({
    ...{ rows: store.hosts, accounts: store.accounts, audit: foundation.audit, host: runtime.host, version: version() },
    leaseMs: foundation.fleet.leaseMs,
  });
  const memory = new IdleMemory({ hasSessions: () => !liveSessions.isEmpty });
  return {
    ...{ service, hosts },
    tasks: [
      { name: 'sample_host', everyMs: HOST_SAMPLE_INTERVAL_MS, run: () => service.sample() },
      { name: 'release_memory', everyMs: RELEASE_MEMORY_INTERVAL_MS, run: async () => memory.release() },
    ],
  };
}

export type OpenedHost = ReturnType<typeof openHost>;
