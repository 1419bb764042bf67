// How much processor time a run used, and how much of the machine's time was idle, as reported by the kernel.
import { readFileSync } from 'node:fs';

/** The kernel reports hundredths of a second to programs, whatever its own resolution. */
const TICKS_PER_SECOND = 100;

export interface ProcessorTime {
  /** Seconds used by this process and by its descendants that have ended. */
  readonly used: number;
  /** Idle seconds, summed over the processors of the machine. */
  readonly idle: number;
  /** Seconds, idle or not, summed over the processors. */
  readonly whole: number;
}

export const readProcessorTime = (): ProcessorTime =>
  parseProcessorTime(readFileSync('/proc/self/stat', 'utf8'), readFileSync('/proc/stat', 'utf8'));

/** `self` is the content of /proc/PID/stat, and `machine` is that of /proc/stat. See proc(5). */
export function parseProcessorTime(self: string, machine: string): ProcessorTime {
  // The name of the program may contain spaces and parentheses.
  const processFields = self.slice(self.lastIndexOf(')') + 2).split(' ');
  const machineTicks = /^cpu +(.*)$/m.exec(machine)?.[1]?.split(' ').slice(0, 8).map(Number) ?? [];
  const [, , , idle = 0, ioWait = 0] = machineTicks;
  return {
    used: sum(processFields.slice(11, 15).map(Number)) / TICKS_PER_SECOND,
    idle: (idle + ioWait) / TICKS_PER_SECOND,
    whole: sum(machineTicks) / TICKS_PER_SECOND,
  };
}

/** Returns the text that is printed at the end of a run: the processor time that was used since `before`. */
export function describeUsage(before: ProcessorTime, now: ProcessorTime): string {
  const idlePercent = (100 * (now.idle - before.idle)) / Math.max(now.whole - before.whole, 1);
  return `${(now.used - before.used).toFixed(0)} s of processor time; the machine was idle for ${idlePercent.toFixed(0)}% of its time`;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
