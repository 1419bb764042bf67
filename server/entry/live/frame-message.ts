// Encodes a frame as a binary message of the live view, once for all viewers.
import type { FrameHead } from '../../../contract/live-messages.ts';

/** A JPEG of a page. */
export interface ShownFrame {
  readonly jpeg: Buffer;
  readonly width: number;
  readonly height: number;
}

/**
 * Encoded messages by JPEG buffer. Each buffer shows one page at one moment. Entries are garbage-collected with the
 * buffer.
 */
const messageByJpeg = new WeakMap<Buffer, Buffer>();

export function frameMessage(page: string, { jpeg, width, height }: ShownFrame): Buffer {
  const knownMessage = messageByJpeg.get(jpeg);
  if (knownMessage) return knownMessage;
  const head: FrameHead = { page, width, height };
  const text = Buffer.from(JSON.stringify(head));
  const length = Buffer.alloc(2);
  length.writeUInt16BE(text.length);
  const message = Buffer.concat([length, text, jpeg]);
  messageByJpeg.set(jpeg, message);
  return message;
}
