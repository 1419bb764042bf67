// The size of a JPEG, from its frame header; undefined for what is none or is torn.
import type { Size } from './matroska.ts';

const START_OF_IMAGE = 0xffd8;
const END_OF_IMAGE = 0xffd9;

export function jpegSize(jpeg: Buffer): Size | undefined {
  if (jpeg.length < 4 || jpeg.readUInt16BE(0) !== START_OF_IMAGE) return undefined;
  if (jpeg.readUInt16BE(jpeg.length - 2) !== END_OF_IMAGE) return undefined;
  for (let at = 2; at + 9 <= jpeg.length && jpeg[at] === 0xff; at += 2 + jpeg.readUInt16BE(at + 2)) {
    const marker = jpeg[at + 1] ?? 0;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { height: jpeg.readUInt16BE(at + 5), width: jpeg.readUInt16BE(at + 7) };
  }
  return undefined;
}
