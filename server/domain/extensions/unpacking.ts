// Limits how many extensions are inspected or unpacked at once, because each one uses a processor and the disk.
import type { PlacesLimits } from '../../kit/places.ts';

export const UNPACKING_LIMITS: PlacesLimits = {
  name: 'unpack an extension',
  atOnce: { session: 2, application: 4, process: 8 },
  waiting: 200,
  withinMs: 30_000,
};
