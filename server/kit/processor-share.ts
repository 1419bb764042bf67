// The share of the host's processors that is busy, from the counters of the kernel.
import { cpus } from 'node:os';

/**
 * The minimum time between two measurements, summed over all processors. Shorter measurements are inaccurate, because
 * the kernel counts in steps of 10 ms for each processor.
 */
const MEASURED_MS_MIN = 200;

/**
 * Returns a function that returns the share of all processors (0 to 1) that was busy since its previous call. If the
 * previous call was too recent, the function returns the previous result again.
 */
export function processorShare(): () => number {
  let previousTimes = processorTimes();
  let share = 0;
  return () => {
    const currentTimes = processorTimes();
    const [busyMs, totalMs] = [currentTimes.busy - previousTimes.busy, currentTimes.all - previousTimes.all];
    if (totalMs < MEASURED_MS_MIN) return share;
    previousTimes = currentTimes;
    share = Math.min(1, Math.max(0, busyMs / totalMs));
    return share;
  };
}

function processorTimes(): { readonly busy: number; readonly all: number } {
  const times = cpus().map(cpu => cpu.times);
  const all = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
  return { all, busy: all - times.reduce((sum, { idle }) => sum + idle, 0) };
}
