// Reads the size of a JPEG from its frame header. Returns undefined for a file that is incomplete or unlike Chromium's
// JPEGs, because a decoder might read a different size from it. Pictures that are larger than any page are not decoded.
import type { Size } from './matroska.ts';

/** These limits bound the memory and time that a decoder needs. */
export const FRAME_PIXELS_MAX = 4096 * 4096;
const FRAME_SIDE_MAX = 8192;
/** Maximum number of JPEG segments before the first scan. Chromium writes fewer than ten. */
const SEGMENTS_MAX = 64;

const START_OF_IMAGE = 0xffd8;
const END_OF_IMAGE = 0xffd9;
const START_OF_SCAN = 0xda;

export function jpegSize(jpeg: Buffer): Size | undefined {
  if (jpeg.length < 4 || jpeg.readUInt16BE(0) !== START_OF_IMAGE) return undefined;
  if (jpeg.readUInt16BE(jpeg.length - 2) !== END_OF_IMAGE) return undefined;
  let size: Size | undefined;
  for (let at = 2, segment = 0; segment < SEGMENTS_MAX && at + 9 <= jpeg.length && jpeg[at] === 0xff; segment++) {
    const marker = jpeg[at + 1] ?? 0;
    if (marker === START_OF_SCAN) return size;
    if (isFrameHeader(marker)) {
      if (size) return undefined;
      size = { height: jpeg.readUInt16BE(at + 5), width: jpeg.readUInt16BE(at + 7) };
      if (size.width === 0 || size.height === 0) return undefined;
    }
    at += 2 + jpeg.readUInt16BE(at + 2);
  }
  return undefined;
}

export const isTooLarge = ({ width, height }: Size): boolean =>
  Math.max(width, height) > FRAME_SIDE_MAX || width * height > FRAME_PIXELS_MAX;

const isFrameHeader = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
