// Tallies of a process that shares no counts with other hosts.
import type { Clock } from '../../kit/clock.ts';
import { silentLog } from '../../kit/log.ts';
import { SharedTallies } from './shared-tally.ts';

const rejectCall = (): Promise<never> => Promise.reject(new Error('there is no other host'));
const NO_ROWS = { count: rejectCall, takeBack: rejectCall, sweep: rejectCall };

export const localTallies = (clock: Clock): SharedTallies =>
  new SharedTallies({ clock, log: silentLog, rows: NO_ROWS, isAlone: () => true });
