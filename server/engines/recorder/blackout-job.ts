// Masks a picture in a worker thread, because masking a large picture would block the event loop.
import type { Job } from '../../kit/worker-pool.ts';
import { blackout, type Rect } from './jpeg-blackout.ts';

export interface BlackoutInput {
  readonly jpeg: Uint8Array;
  readonly rects: readonly Rect[];
}

/** `jpeg` is absent if the picture cannot be masked. Such a picture must not be kept. */
export interface BlackoutOutput {
  readonly jpeg?: Uint8Array;
}

/**
 * Masking a picture of 3840x2160 pixels takes less than a second on a slow machine. Only a hostile JPEG takes longer.
 */
const BLACKOUT_TIMEOUT_MS = 10_000;

export const BLACKOUT: Job<BlackoutInput, BlackoutOutput> = {
  name: 'mask a picture',
  module: import.meta.url,
  limitMs: BLACKOUT_TIMEOUT_MS,
};

export function work({ jpeg, rects }: BlackoutInput): BlackoutOutput {
  const maskedJpeg = blackout(Buffer.from(jpeg.buffer, jpeg.byteOffset, jpeg.byteLength), rects);
  return maskedJpeg ? { jpeg: Uint8Array.from(maskedJpeg) } : {};
}
