// Draws the newest frame as large as possible, up to twice its size, and converts coordinates between the screen and
// the page.
import type { FrameHead } from '../../contract/live-messages.ts';
import { parts } from './parts.ts';

export class FrameView {
  #size = { width: 1280, height: 720 };
  #page = '';

  constructor() {
    new ResizeObserver(() => this.#fit()).observe(parts.stage);
    this.#fit();
  }

  /** The page that the frame shows. Empty before the first frame. */
  get page(): string {
    return this.#page;
  }

  async draw({ page, width, height }: FrameHead, jpeg: Blob): Promise<void> {
    const bitmap = await createImageBitmap(jpeg);
    const { canvas } = parts;
    if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
      canvas.width = bitmap.width;
      canvas.height = bitmap.height;
    }
    if (width !== this.#size.width || height !== this.#size.height) {
      this.#size = { width, height };
      this.#fit();
    }
    canvas.getContext('2d', { alpha: false })?.drawImage(bitmap, 0, 0);
    this.#page = page;
    bitmap.close();
  }

  /** Converts a pointer position to CSS pixels of the page. */
  pointOf({ clientX, clientY }: { clientX: number; clientY: number }): { x: number; y: number } {
    const box = parts.canvas.getBoundingClientRect();
    const { width, height } = this.#size;
    return { x: ((clientX - box.left) * width) / box.width, y: ((clientY - box.top) * height) / box.height };
  }

  /** Converts a rectangle of the page to screen coordinates. */
  boxOf(box: { x: number; y: number; width: number; height: number }): DOMRect {
    const canvasBox = parts.canvas.getBoundingClientRect();
    const scale = canvasBox.width / this.#size.width;
    return new DOMRect(
      canvasBox.left + box.x * scale,
      canvasBox.top + box.y * scale,
      box.width * scale,
      box.height * scale,
    );
  }

  #fit(): void {
    const { width, height } = this.#size;
    const style = getComputedStyle(parts.stage);
    const availableSize = {
      width: parts.stage.clientWidth - Number.parseFloat(style.paddingLeft) * 2,
      height: parts.stage.clientHeight - Number.parseFloat(style.paddingTop) * 2,
    };
    const scale = Math.min(availableSize.width / width, availableSize.height / height, 2);
    parts.canvas.style.width = `${Math.max(1, Math.floor(width * scale))}px`;
    parts.canvas.style.height = `${Math.max(1, Math.floor(height * scale))}px`;
  }
}
