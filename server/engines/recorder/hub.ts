// The newest frame of one page, and its viewers. Frames are not queued: a slow viewer skips frames.
import type { Closeable } from '../../kit/scope.ts';

export interface Frame {
  readonly jpeg: Buffer;
  /** The same picture without masks, only for the person who controls the page. */
  readonly unmasked: Buffer;
  /** Whether the whole picture is masked for everybody except the person who has control in a hand-off. */
  readonly isCovered: boolean;
  /** When the frame was painted, in wall-clock time. */
  readonly at: Date;
  readonly width: number;
  readonly height: number;
  readonly metadata: FrameMetadata;
}

export interface FrameMetadata {
  readonly offsetTop: number;
  readonly pageScaleFactor: number;
  readonly deviceWidth: number;
  readonly deviceHeight: number;
  readonly scrollOffsetX: number;
  readonly scrollOffsetY: number;
}

export class Hub {
  readonly #viewers = new Set<(frame: Frame) => void>();
  readonly #onViewersChanged: () => void;
  #newestFrame: Frame | undefined;

  constructor(onChanged: () => void = () => {}) {
    this.#onViewersChanged = onChanged;
  }

  get newestFrame(): Frame | undefined {
    return this.#newestFrame;
  }

  get viewerCount(): number {
    return this.#viewers.size;
  }

  /**
   * Calls the listener at once with the newest frame, if there is one, and then with each new frame. While there are
   * viewers, the frame rate is higher.
   */
  watch(listener: (frame: Frame) => void): Closeable {
    this.#viewers.add(listener);
    this.#onViewersChanged();
    if (this.#newestFrame) listener(this.#newestFrame);
    return {
      close: () => {
        this.#viewers.delete(listener);
        this.#onViewersChanged();
      },
    };
  }

  /** Call when the page has ended. The newest frame is then no longer kept in memory. */
  clear(): void {
    this.#newestFrame = undefined;
  }

  show(frame: Frame): void {
    this.#newestFrame = frame;
    for (const showFrame of this.#viewers) showFrame(frame);
  }
}
