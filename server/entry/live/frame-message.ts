// A picture as a message of the contract: put together once, however many look at it.
import type { FrameHead } from '../../../contract/live-messages.ts';
import type { Picture } from '../../domain/live/viewing.ts';

/** By the picture's own bytes, which are of one page and one moment; forgotten with them. */
const made = new WeakMap<Buffer, Buffer>();

export function frameMessage(page: string, { jpeg, width, height }: Picture): Buffer {
  const standing = made.get(jpeg);
  if (standing) return standing;
  const head: FrameHead = { page, width, height };
  const text = Buffer.from(JSON.stringify(head));
  const length = Buffer.alloc(2);
  length.writeUInt16BE(text.length);
  const message = Buffer.concat([length, text, jpeg]);
  made.set(jpeg, message);
  return message;
}
