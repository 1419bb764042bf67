// Describes the machine on which figures were measured. Figures without this description cannot be compared.
import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { readChromiumVersion } from '../server/engines/slots/chromium.ts';
import { systemClock } from '../server/kit/clock.ts';
import { CHROMIUM_PATH } from '../tests/harness/by-hand.ts';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly system: string;
  readonly chromium: string;
  readonly node: string;
  readonly date: string;
  /** The load average over one minute when the benchmark began. */
  readonly loadAtStart: number;
}

export async function readMachine(): Promise<Machine> {
  const processors = cpus();
  return {
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    memoryGib: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    system: systemName(),
    chromium: (await readChromiumVersion(CHROMIUM_PATH)) ?? 'unknown',
    node: process.version,
    date: systemClock.now().toISOString().slice(0, 10),
    loadAtStart: Number((loadavg()[0] ?? 0).toFixed(2)),
  };
}

export const describeMachine = (machine: Machine): string =>
  `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, ${machine.system}, Linux ${machine.kernel}, ` +
  `${machine.chromium}, Node ${machine.node}, ${machine.date}, load at start ${machine.loadAtStart}`;

function systemName(): string {
  try {
    return /^PRETTY_NAME="?([^"\n]+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'unknown system';
  } catch {
    return 'unknown system';
  }
}
