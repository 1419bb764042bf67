// Limits how many extensions are inspected or unpacked at once, because each one uses a processor and the disk.
import type { WorkLimits } from '../../kit/work-limiter.ts';

export const UNPACKING_LIMITS: WorkLimits = {
  name: 'unpack an extension',
  runningMax: { session: 2, application: 4, process: 8 },
  waitingMax: 200,
  withinMs: 30_000,
};
