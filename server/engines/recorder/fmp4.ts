// Fragmented MP4 for segments: parses ffmpeg's output, and writes fragments with the exact times of the frames. Pure.

const TICKS_PER_MS = 90;

export interface Fragment {
  /** The boxes `ftyp` and `moov`. */
  readonly init: Buffer;
  readonly sizes: readonly number[];
  /** Whether each frame is a key frame. */
  readonly keys: readonly boolean[];
  /** The coded frames, concatenated. */
  readonly payload: Buffer;
}

export interface Box {
  readonly type: string;
  /** Offsets of the box's header, content and end. */
  readonly at: number;
  readonly start: number;
  readonly end: number;
}

export class BadMedia extends Error {
  override readonly name = 'BadMedia';
}

function* boxesIn(bytes: Buffer, from = 0, to = bytes.length): Generator<Box> {
  for (let at = from; at + 8 <= to; ) {
    const shortSize = bytes.readUInt32BE(at);
    const headerBytes = shortSize === 1 ? 16 : 8;
    const size = shortSize === 1 ? Number(bytes.readBigUInt64BE(at + 8)) : shortSize === 0 ? to - at : shortSize;
    if (size < headerBytes || at + size > to)
      throw new BadMedia(`the box at offset ${at} has the invalid size ${size}`);
    yield { type: bytes.toString('latin1', at + 4, at + 8), at, start: at + headerBytes, end: at + size };
    at += size;
  }
}

/** Finds a box by the types of its parents and its own type. */
export function boxAt(bytes: Buffer, path: readonly string[]): Box {
  let [from, to] = [0, bytes.length];
  let foundBox: Box | undefined;
  for (const type of path) {
    foundBox = [...boxesIn(bytes, from, to)].find(box => box.type === type);
    if (!foundBox) throw new BadMedia(`the box ${path.join('/')} is missing`);
    [from, to] = [foundBox.start, foundBox.end];
  }
  if (!foundBox) throw new BadMedia('the path of a box is empty');
  return foundBox;
}

/**
 * Parses one fragment with the given number of frames. ffmpeg's output is not trusted, because ffmpeg has decoded a
 * page's pictures.
 */
export function parseFragment(bytes: Buffer, frames: number): Fragment {
  const boxes = [...boxesIn(bytes)];
  const moofs = boxes.filter(box => box.type === 'moof');
  const mdat = boxes.find(box => box.type === 'mdat');
  const [moof] = moofs;
  if (moofs.length !== 1 || !moof || !mdat) throw new BadMedia(`expected one fragment, found ${moofs.length}`);
  const init = bytes.subarray(0, moof.at);
  const samples = samplesIn(bytes.subarray(moof.at, moof.end), frames);
  const sizes = samples.map(({ size }) => size);
  const payload = bytes.subarray(mdat.start, mdat.end);
  if (sizes.reduce((sum, size) => sum + size, 0) !== payload.length)
    throw new BadMedia('the sum of the frame sizes differs from the size of the payload');
  return { init, sizes, keys: samples.map(({ flags }) => !(flags & NON_KEY_FRAME_FLAG)), payload };
}

/**
 * Splits segments that were encoded together. The first frame of each segment, and no other frame, must be a key frame.
 */
export function splitAtKeyFrames(
  { init, sizes, keys, payload }: Fragment,
  counts: readonly number[],
): readonly Fragment[] {
  let [sample, byte] = [0, 0];
  return counts.map(count => {
    const [from, firstByte] = [sample, byte];
    sample += count;
    const segmentFrames = { init, sizes: sizes.slice(from, sample), keys: keys.slice(from, sample) };
    byte += segmentFrames.sizes.reduce((sum, size) => sum + size, 0);
    if (segmentFrames.keys.length !== count || segmentFrames.keys.some((isKey, index) => isKey !== (index === 0)))
      throw new BadMedia(`a segment of ${count} frames does not begin with its only key frame`);
    return { ...segmentFrames, payload: payload.subarray(firstByte, byte) };
  });
}

const DATA_OFFSET = 0x1;
const FIRST_FLAGS = 0x4;
const DURATION = 0x100;
const SIZE = 0x200;
const FLAGS = 0x400;
const COMPOSITION = 0x800;

/** Sample flag: the sample depends on other samples (sample_is_non_sync_sample). */
const NON_KEY_FRAME_FLAG = 0x10000;

interface Sample {
  readonly size: number;
  readonly flags: number;
}

function samplesIn(moof: Buffer, frames: number): Sample[] {
  const trun = boxAt(moof, ['moof', 'traf', 'trun']);
  const presentFlags = moof.readUInt32BE(trun.start) & 0xffffff;
  const count = moof.readUInt32BE(trun.start + 4);
  if (count !== frames) throw new BadMedia(`expected ${frames} frames, found ${count}`);
  const firstFlagsAt = trun.start + 8 + (presentFlags & DATA_OFFSET ? 4 : 0);
  const samplesAt = firstFlagsAt + (presentFlags & FIRST_FLAGS ? 4 : 0);
  const sampleBytes = [DURATION, SIZE, FLAGS, COMPOSITION].filter(flag => presentFlags & flag).length * 4;
  const sizeAt = presentFlags & DURATION ? 4 : 0;
  const flagsAt = sizeAt + (presentFlags & SIZE ? 4 : 0);
  const sampleDefaults = defaultSample(moof);
  return Array.from({ length: count }, (_, index) => {
    const at = samplesAt + index * sampleBytes;
    const flags = presentFlags & FLAGS ? moof.readUInt32BE(at + flagsAt) : sampleDefaults.flags;
    const size = presentFlags & SIZE ? moof.readUInt32BE(at + sizeAt) : sampleDefaults.size;
    if (size === undefined) throw new BadMedia('the fragment does not contain the sizes of its frames');
    return { size, flags: index === 0 && presentFlags & FIRST_FLAGS ? moof.readUInt32BE(firstFlagsAt) : (flags ?? 0) };
  });
}

/**
 * Reads from `tfhd` the defaults for samples. `tfhd` contains only the optional fields that are present, one after
 * another.
 */
function defaultSample(moof: Buffer): Partial<Sample> {
  const tfhd = boxAt(moof, ['moof', 'traf', 'tfhd']);
  const presentFlags = moof.readUInt32BE(tfhd.start) & 0xffffff;
  let at = tfhd.start + 8;
  const readField = (flag: number, bytes: number): number | undefined => {
    if (!(presentFlags & flag)) return undefined;
    at += bytes;
    return moof.readUInt32BE(at - 4);
  };
  readField(0x1, 8);
  readField(0x2, 4);
  readField(0x8, 4);
  const size = readField(0x10, 4);
  const flags = readField(0x20, 4);
  return { ...(size === undefined ? {} : { size }), ...(flags === undefined ? {} : { flags }) };
}

export interface SegmentParams {
  /** The number of the segment within the page, from 1. */
  readonly sequence: number;
  readonly startMs: number;
  readonly durationsMs: readonly number[];
  readonly sizes: readonly number[];
  readonly payload: Buffer;
}

const KEY_FRAME_FLAGS = 0x02000000;
const DEPENDENT_FRAME_FLAGS = 0x01010000;

/** A media segment that begins at `startMs` and lasts for the sum of its durations. */
export function segmentBytes({ sequence, startMs, durationsMs, sizes, payload }: SegmentParams): {
  bytes: Buffer;
  payloadAt: number;
} {
  const samples = sizes.flatMap((size, index) => [(durationsMs[index] ?? 0) * TICKS_PER_MS, size]);
  const moof = (offset: number): Buffer =>
    box('moof', [
      fullBox('mfhd', 0, 0, [u32(sequence)]),
      box('traf', [
        fullBox('tfhd', 0, 0x020020, [u32(1), u32(DEPENDENT_FRAME_FLAGS)]), // default-base-is-moof, flags of all samples but the first
        fullBox('tfdt', 1, 0, [u64(startMs * TICKS_PER_MS)]),
        fullBox('trun', 0, DATA_OFFSET | FIRST_FLAGS | DURATION | SIZE, [
          u32(sizes.length),
          u32(offset),
          u32(KEY_FRAME_FLAGS),
          ...samples.map(u32),
        ]),
      ]),
    ]);
  const moofBytes = moof(moof(0).length + 8);
  return {
    bytes: Buffer.concat([moofBytes, u32(payload.length + 8), Buffer.from('mdat'), payload]),
    payloadAt: moofBytes.length + 8,
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
