// Reads the pixels of a PNG in the format of browser screenshots: 8 bits per channel, RGB or RGBA, not interlaced.
import assert from 'node:assert/strict';
import { inflateSync } from 'node:zlib';

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** The color as `#rrggbb`. */
  colourAt(x: number, y: number): string;
}

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const CHANNEL_COUNTS: Readonly<Record<number, number>> = { 2: 3, 6: 4 };

export function decodePng(file: Buffer): Picture {
  assert.ok(file.subarray(0, 8).equals(SIGNATURE), 'the file is not a PNG');
  const chunks = [...chunksOf(file)];
  const header = chunks.find(({ type }) => type === 'IHDR')?.data ?? Buffer.alloc(13);
  const [width, height, depth, colourType] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9]];
  const channelCount = CHANNEL_COUNTS[colourType ?? -1];
  assert.ok(
    depth === 8 && channelCount && header[12] === 0,
    'unsupported PNG: expected 8 bits per channel, RGB or RGBA, not interlaced',
  );
  const compressedData = Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data));
  const pixels = unfilter(inflateSync(compressedData), width * channelCount, height, channelCount);
  return {
    width,
    height,
    colourAt: (x, y) => {
      assert.ok(x >= 0 && x < width && y >= 0 && y < height, `${x},${y} lies outside of ${width}x${height}`);
      const at = (y * width + x) * channelCount;
      return `#${pixels.subarray(at, at + 3).toString('hex')}`;
    },
  };
}

function* chunksOf(file: Buffer): Generator<{ type: string; data: Buffer }> {
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    yield { type: file.toString('latin1', at + 4, at + 8), data: file.subarray(at + 8, at + 8 + length) };
    at += 12 + length;
  }
}

/** Removes the filters. Each line has a filter that predicts bytes from those to the left, above, and above left. */
function unfilter(raw: Buffer, stride: number, height: number, channelCount: number): Buffer {
  const out = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const filterType = raw[y * (stride + 1)] ?? 0;
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x;
      const left = x < channelCount ? 0 : (out[at - channelCount] ?? 0);
      const up = y === 0 ? 0 : (out[at - stride] ?? 0);
      const upLeft = x < channelCount || y === 0 ? 0 : (out[at - stride - channelCount] ?? 0);
      out[at] = (raw[y * (stride + 1) + 1 + x] ?? 0) + predictByte(filterType, left, up, upLeft);
    }
  }
  return out;
}

function predictByte(filterType: number, left: number, up: number, upLeft: number): number {
  if (filterType === 1) return left;
  if (filterType === 2) return up;
  if (filterType === 3) return (left + up) >> 1;
  return filterType === 4 ? paethPrediction(left, up, upLeft) : 0;
}

function paethPrediction(left: number, up: number, upLeft: number): number {
  const guess = left + up - upLeft;
  const [toLeft, toUp, toUpLeft] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - upLeft)];
  if (toLeft <= toUp && toLeft <= toUpLeft) return left;
  return toUp <= toUpLeft ? up : upLeft;
}
