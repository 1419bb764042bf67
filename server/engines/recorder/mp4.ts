// Joins segments into one MP4 file without encoding them again. The index comes first. The file can therefore be played
// while it loads, and its length is known in advance. Times are exact to the millisecond. Pure.
import { BadMedia, box, boxAt, fullBox, u32, u64 } from './fmp4.ts';
import type { Size } from './matroska.ts';

/** The frames of a segment, and how long each is shown. The first is a key frame. */
export interface Mp4Segment {
  readonly durationsMs: readonly number[];
  readonly sizes: readonly number[];
}

export interface Mp4Head {
  /** Everything before the first coded frame. */
  readonly head: Buffer;
  /** The length of the whole file. */
  readonly bytes: number;
  readonly durationMs: number;
}

const TICKS_PER_SECOND = 1000;
const IDENTITY_MATRIX = [0x00010000, 0, 0, 0, 0x00010000, 0, 0, 0, 0x40000000];
const UNDETERMINED_LANGUAGE = 0x55c4;
const MDAT_HEAD_BYTES = 16;

/**
 * Returns the part of the file before the first coded frame. `init` is the init segment, which is the same for all
 * segments.
 */
export function mp4Head(init: Buffer, size: Size, mp4Segments: readonly Mp4Segment[]): Mp4Head {
  const stsd = boxAt(init, ['moov', 'trak', 'mdia', 'minf', 'stbl', 'stsd']);
  const description = init.subarray(stsd.at, stsd.end);
  const payloadBytes = sum(mp4Segments.flatMap(({ sizes }) => sizes));
  const durationMs = sum(mp4Segments.flatMap(({ durationsMs }) => durationsMs));
  if (mp4Segments.length === 0 || durationMs === 0) throw new BadMedia('there are no segments to join');
  const fileTypeBox = box('ftyp', [Buffer.from('isom'), u32(0x200), Buffer.from('isomiso2avc1mp41')]);
  const moovAt = (firstFrameAt: number): Buffer => moov(description, size, mp4Segments, durationMs, firstFrameAt);
  const headBytes = fileTypeBox.length + moovAt(0).length + MDAT_HEAD_BYTES;
  const mdat = Buffer.concat([u32(1), Buffer.from('mdat'), u64(payloadBytes + MDAT_HEAD_BYTES)]);
  return { head: Buffer.concat([fileTypeBox, moovAt(headBytes), mdat]), bytes: headBytes + payloadBytes, durationMs };
}

function moov(
  description: Buffer,
  size: Size,
  mp4Segments: readonly Mp4Segment[],
  durationMs: number,
  at: number,
): Buffer {
  const creationTimes = [u64(0), u64(0)];
  const mvhd = fullBox('mvhd', 1, 0, [
    ...creationTimes,
    u32(TICKS_PER_SECOND),
    u64(durationMs),
    u32(0x00010000), // normal playback rate
    Buffer.from('0100', 'hex'), // full volume
    Buffer.alloc(10),
    ...IDENTITY_MATRIX.map(u32),
    Buffer.alloc(24),
    u32(2), // next track id
  ]);
  const tkhd = fullBox('tkhd', 1, 3, [
    ...creationTimes,
    u32(1),
    u32(0),
    u64(durationMs),
    Buffer.alloc(16),
    ...IDENTITY_MATRIX.map(u32),
    u32(size.width * 0x10000),
    u32(size.height * 0x10000),
  ]);
  const mdhd = fullBox('mdhd', 1, 0, [
    ...creationTimes,
    u32(TICKS_PER_SECOND),
    u64(durationMs),
    u32(UNDETERMINED_LANGUAGE * 0x10000),
  ]);
  const hdlr = fullBox('hdlr', 0, 0, [u32(0), Buffer.from('vide'), Buffer.alloc(12), Buffer.from('Video\0')]);
  const dinf = box('dinf', [fullBox('dref', 0, 0, [u32(1), fullBox('url ', 0, 1, [])])]);
  const minf = box('minf', [fullBox('vmhd', 0, 1, [Buffer.alloc(8)]), dinf, sampleTable(description, mp4Segments, at)]);
  return box('moov', [mvhd, box('trak', [tkhd, box('mdia', [mdhd, hdlr, minf])])]);
}

function sampleTable(description: Buffer, mp4Segments: readonly Mp4Segment[], firstFrameAt: number): Buffer {
  const durationRuns = runLengths(mp4Segments.flatMap(({ durationsMs }) => durationsMs));
  const sizes = mp4Segments.flatMap(({ sizes }) => sizes);
  const frameCountRuns = runLengths(mp4Segments.map(({ sizes }) => sizes.length));
  const keys = sumsBefore(mp4Segments.map(({ sizes }) => sizes.length)).map(framesBefore => framesBefore + 1);
  const chunkOffsets = sumsBefore(mp4Segments.map(piece => sum(piece.sizes))).map(
    bytesBefore => firstFrameAt + bytesBefore,
  );
  const chunkStarts = sumsBefore(frameCountRuns.map(({ count }) => count));
  return box('stbl', [
    description,
    fullBox('stts', 0, 0, [encodeTable(durationRuns.map(({ count, value }) => [count, value]))]),
    fullBox('stss', 0, 0, [encodeTable(keys.map(key => [key]))]),
    fullBox('stsc', 0, 0, [
      encodeTable(frameCountRuns.map(({ value }, index) => [(chunkStarts[index] ?? 0) + 1, value, 1])),
    ]),
    fullBox('stsz', 0, 0, [u32(0), encodeTable(sizes.map(size => [size]))]),
    fullBox('co64', 0, 0, [u32(chunkOffsets.length), ...chunkOffsets.map(u64)]),
  ]);
}

/** Returns an encoded table: the number of rows, followed by the rows. */
function encodeTable(rows: readonly (readonly number[])[]): Buffer {
  const numbers = [rows.length, ...rows.flat()];
  const bytes = Buffer.alloc(numbers.length * 4);
  for (const [index, number] of numbers.entries()) bytes.writeUInt32BE(number, index * 4);
  return bytes;
}

function runLengths(values: readonly number[]): { count: number; value: number }[] {
  const runs: { count: number; value: number }[] = [];
  for (const value of values) {
    const last = runs.at(-1);
    if (last?.value === value) last.count++;
    else runs.push({ count: 1, value });
  }
  return runs;
}

/** Returns, for each value, the sum of the values before it. */
function sumsBefore(values: readonly number[]): number[] {
  let sumBefore = 0;
  return values.map(value => {
    sumBefore += value;
    return sumBefore - value;
  });
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
