// How many sessions this machine can hold with each engine, from figures that `npm run bench:engines` measured.
import { availableParallelism, totalmem } from 'node:os';
import type { Engine } from './slots.ts';

const MIB = 1024 ** 2;

interface Figures {
  /** Private memory of an idle session with a page. */
  readonly idleBytes: number;
  /**
   * Processor time for creating a cold session, reading the title of a page and releasing the session, including the
   * server's part.
   */
  readonly cycleCpuSeconds: number;
}

/** Measured on 2026-11-23 with Chromium 156.0.8078.79 on Debian 12 and an AMD EPYC processor. See docs/engines.md. */
const FIGURES: Readonly<Record<Engine, Figures>> = {
  chromium: { idleBytes: 101 * MIB, cycleCpuSeconds: 1.24 },
  'headless-shell': { idleBytes: 61 * MIB, cycleCpuSeconds: 0.79 },
};
/** Memory for the system, the server and its database. */
const RESERVED_BYTES = 1024 * MIB;

export interface Machine {
  readonly memoryBytes: number;
  readonly processors: number;
}

export interface Capacity {
  /** Number of sessions with an idle page that fit into memory. A busy page takes several times as much memory. */
  readonly idleSessions: number;
  /** Number of cold sessions that the processors can start, use for one page, and end in a minute. */
  readonly startsPerMinute: number;
}

/** Returns the resources of this machine. The memory limit of a container applies, if there is one. */
export function thisMachine(): Machine {
  const limit = process.constrainedMemory();
  return {
    memoryBytes: limit > 0 ? Math.min(limit, totalmem()) : totalmem(),
    processors: availableParallelism(),
  };
}

export function capacityOf(engine: Engine, { memoryBytes, processors }: Machine): Capacity {
  const { idleBytes, cycleCpuSeconds } = FIGURES[engine];
  return {
    idleSessions: Math.max(0, Math.floor((memoryBytes - RESERVED_BYTES) / idleBytes)),
    startsPerMinute: Math.floor((processors * 60) / cycleCpuSeconds),
  };
}

/** Returns the advice for the operator of a machine with little memory. */
export const adviceForMemory = (engine: Engine): string =>
  `An idle session with ${engine} takes about ${FIGURES[engine].idleBytes / MIB} MiB, and a busy one several times as much: lower BERTH_SLOTS, or add memory.`;

export function describeCapacity(engine: Engine, machine: Machine): string {
  const { idleSessions, startsPerMinute } = capacityOf(engine, machine);
  return `${engine}: about ${idleSessions} idle sessions in memory, ${startsPerMinute} cold sessions a minute`;
}
