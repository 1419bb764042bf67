// Fragmented MP4 as segments need it: takes ffmpeg's output apart, and writes the fragment anew with the times that we
// know better. Pure bytes.

export const TICKS_PER_MS = 90;

export interface Fragment {
  /** ftyp and moov. */
  readonly init: Buffer;
  readonly sizes: readonly number[];
  /** The coded frames, one after the other. */
  readonly payload: Buffer;
}

export interface Box {
  readonly type: string;
  /** Where its header begins, where its content begins, where it ends. */
  readonly at: number;
  readonly start: number;
  readonly end: number;
}

export class BadMedia extends Error {
  override readonly name = 'BadMedia';
}

export function* boxesIn(bytes: Buffer, from = 0, to = bytes.length): Generator<Box> {
  for (let at = from; at + 8 <= to; ) {
    const short = bytes.readUInt32BE(at);
    const head = short === 1 ? 16 : 8;
    const size = short === 1 ? Number(bytes.readBigUInt64BE(at + 8)) : short === 0 ? to - at : short;
    if (size < head || at + size > to) throw new BadMedia(`a box at ${at} is ${size} bytes long`);
    yield { type: bytes.toString('latin1', at + 4, at + 8), at, start: at + head, end: at + size };
    at += size;
  }
}

/** The box at the end of a path of types. */
export function boxAt(bytes: Buffer, path: readonly string[]): Box {
  let [from, to] = [0, bytes.length];
  let found: Box | undefined;
  for (const type of path) {
    found = [...boxesIn(bytes, from, to)].find(box => box.type === type);
    if (!found) throw new BadMedia(`there is no ${path.join('/')}`);
    [from, to] = [found.start, found.end];
  }
  if (!found) throw new BadMedia('an empty path');
  return found;
}

/** ffmpeg writes one fragment, because it is told to cut nowhere. */
export function takeApart(bytes: Buffer): Fragment {
  const boxes = [...boxesIn(bytes)];
  const moofs = boxes.filter(box => box.type === 'moof');
  const mdat = boxes.find(box => box.type === 'mdat');
  const [moof] = moofs;
  if (moofs.length !== 1 || !moof || !mdat) throw new BadMedia(`${moofs.length} fragments instead of one`);
  const init = bytes.subarray(0, moof.at);
  const sizes = sampleSizes(bytes.subarray(moof.at, moof.end));
  const payload = bytes.subarray(mdat.start, mdat.end);
  if (sizes.reduce((sum, size) => sum + size, 0) !== payload.length) throw new BadMedia('sizes and payload disagree');
  return { init, sizes, payload };
}

const DATA_OFFSET = 0x1;
const FIRST_FLAGS = 0x4;
const DURATION = 0x100;
const SIZE = 0x200;
const FLAGS = 0x400;
const COMPOSITION = 0x800;

function sampleSizes(moof: Buffer): number[] {
  const trun = boxAt(moof, ['moof', 'traf', 'trun']);
  const flags = moof.readUInt32BE(trun.start) & 0xffffff;
  const count = moof.readUInt32BE(trun.start + 4);
  const skip = 8 + (flags & DATA_OFFSET ? 4 : 0) + (flags & FIRST_FLAGS ? 4 : 0);
  const step = [DURATION, SIZE, FLAGS, COMPOSITION].filter(flag => flags & flag).length * 4;
  if (!(flags & SIZE)) return Array.from({ length: count }, () => defaultSize(moof));
  const sizeAt = flags & DURATION ? 4 : 0;
  return Array.from({ length: count }, (_, index) => moof.readUInt32BE(trun.start + skip + index * step + sizeAt));
}

function defaultSize(moof: Buffer): number {
  const tfhd = boxAt(moof, ['moof', 'traf', 'tfhd']);
  const flags = moof.readUInt32BE(tfhd.start) & 0xffffff;
  if (!(flags & 0x10)) throw new BadMedia('samples without sizes');
  const before = [0x1, 0x2, 0x8].reduce((sum, flag) => sum + (flags & flag ? (flag === 0x1 ? 8 : 4) : 0), 0);
  return moof.readUInt32BE(tfhd.start + 8 + before);
}

export interface SegmentWish {
  /** Counts the page's segments, from 1. */
  readonly sequence: number;
  readonly startMs: number;
  readonly durationsMs: readonly number[];
  readonly sizes: readonly number[];
  readonly payload: Buffer;
}

const KEY_FRAME = 0x02000000;
const DEPENDENT = 0x01010000;

/** A media segment that begins at `startMs` and lasts as long as its durations say. */
export function segmentBytes({ sequence, startMs, durationsMs, sizes, payload }: SegmentWish): {
  bytes: Buffer;
  payloadAt: number;
} {
  const samples = sizes.flatMap((size, index) => [(durationsMs[index] ?? 0) * TICKS_PER_MS, size]);
  const moof = (offset: number): Buffer =>
    box('moof', [
      fullBox('mfhd', 0, 0, [u32(sequence)]),
      box('traf', [
        fullBox('tfhd', 0, 0x020020, [u32(1), u32(DEPENDENT)]), // default-base-is-moof, flags of all but the first
        fullBox('tfdt', 1, 0, [u64(startMs * TICKS_PER_MS)]),
        fullBox('trun', 0, DATA_OFFSET | FIRST_FLAGS | DURATION | SIZE, [
          u32(sizes.length),
          u32(offset),
          u32(KEY_FRAME),
          ...samples.map(u32),
        ]),
      ]),
    ]);
  const head = moof(moof(0).length + 8);
  return {
    bytes: Buffer.concat([head, u32(payload.length + 8), Buffer.from('mdat'), payload]),
    payloadAt: head.length + 8,
  };
}

export function box(type: string, content: readonly Buffer[]): Buffer {
  const size = content.reduce((sum, part) => sum + part.length, 8);
  return Buffer.concat([u32(size), Buffer.from(type, 'latin1'), ...content]);
}

export const fullBox = (type: string, version: number, flags: number, content: readonly Buffer[]): Buffer =>
  box(type, [u32(((version << 24) | flags) >>> 0), ...content]);

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}
