// The work of masking a picture as a job for a worker thread: a large one takes longer than anybody should wait for.
import type { Job } from '../../kit/worker-pool.ts';
import { blackout, type Rect } from './jpeg-blackout.ts';

export interface BlackoutInput {
  readonly jpeg: Uint8Array;
  readonly rects: readonly Rect[];
}

/** Absent: this picture cannot be painted, and must not be kept. */
export interface BlackoutOutput {
  readonly jpeg?: Uint8Array;
}

/** 3840x2160 takes under a second on a slow machine; what a browser makes up to take longer is no picture of a page. */
const LIMIT_MS = 10_000;

export const BLACKOUT: Job<BlackoutInput, BlackoutOutput> = {
  name: 'mask a picture',
  module: import.meta.url,
  limitMs: LIMIT_MS,
};

export function work({ jpeg, rects }: BlackoutInput): BlackoutOutput {
  const painted = blackout(Buffer.from(jpeg.buffer, jpeg.byteOffset, jpeg.byteLength), rects);
  return painted ? { jpeg: Uint8Array.from(painted) } : {};
}
