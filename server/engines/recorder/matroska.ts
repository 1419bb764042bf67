// The format of a journal: Matroska with one frame in each cluster, so that a truncated file is readable up to its last
// complete frame. Times are milliseconds since the beginning of the page's recording.

export interface TimedFrame {
  readonly atMs: number;
  readonly jpeg: Buffer;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

const ID = {
  ebml: '1a45dfa3',
  docType: '4282',
  segment: '18538067',
  info: '1549a966',
  timestampScale: '2ad7b1',
  tracks: '1654ae6b',
  track: 'ae',
  trackNumber: 'd7',
  trackUid: '73c5',
  trackType: '83',
  codec: '86',
  video: 'e0',
  width: 'b0',
  height: 'ba',
  cluster: '1f43b675',
  timestamp: 'e7',
  block: 'a3',
} as const;

const UNKNOWN_SIZE = Buffer.from('01ffffffffffffff', 'hex');
const SIZE_BYTES = 8;
/** The header of a block: track 1, relative timestamp 0, a key frame. */
const BLOCK_HEADER = Buffer.from('81000080', 'hex');
const MILLISECOND_NS = 1_000_000;
const VIDEO_TRACK_TYPE = 1;
const CLUSTER_ID = Buffer.from(ID.cluster, 'hex');

export function journalHead({ width, height }: Size): Buffer {
  const track = encodeElement(ID.track, [
    encodeElement(ID.trackNumber, [uint(1)]),
    encodeElement(ID.trackUid, [uint(1)]),
    encodeElement(ID.trackType, [uint(VIDEO_TRACK_TYPE)]),
    encodeElement(ID.codec, [Buffer.from('V_MJPEG')]),
    encodeElement(ID.video, [encodeElement(ID.width, [uint(width)]), encodeElement(ID.height, [uint(height)])]),
  ]);
  return Buffer.concat([
    encodeElement(ID.ebml, [encodeElement(ID.docType, [Buffer.from('matroska')])]),
    Buffer.from(ID.segment, 'hex'),
    UNKNOWN_SIZE,
    encodeElement(ID.info, [encodeElement(ID.timestampScale, [uint(MILLISECOND_NS)])]),
    encodeElement(ID.tracks, [track]),
  ]);
}

/**
 * Returns the bytes that precede the picture of a frame. They are in a separate buffer, so that the picture need not be
 * copied.
 */
export function journalFrameHead({ atMs, jpeg }: TimedFrame): Buffer {
  const time = encodeElement(ID.timestamp, [uint(atMs)]);
  const block = Buffer.concat([elementHeader(ID.block, BLOCK_HEADER.length + jpeg.length), BLOCK_HEADER]);
  return Buffer.concat([elementHeader(ID.cluster, time.length + block.length + jpeg.length), time, block]);
}

export const journalFrame = (frame: TimedFrame): Buffer => Buffer.concat([journalFrameHead(frame), frame.jpeg]);

export interface JournalContent {
  readonly frames: readonly TimedFrame[];
  /** The length of the file up to the end of the last complete frame. */
  readonly completeFramesBytes: number;
}

/** Returns the complete frames of a journal. */
export function readJournal(bytes: Buffer): JournalContent {
  const frames: TimedFrame[] = [];
  const firstClusterAt = bytes.indexOf(CLUSTER_ID);
  let at = Math.max(firstClusterAt, 0);
  while (firstClusterAt >= 0 && at + CLUSTER_ID.length + SIZE_BYTES <= bytes.length) {
    if (!bytes.subarray(at, at + CLUSTER_ID.length).equals(CLUSTER_ID)) break;
    const start = at + CLUSTER_ID.length + SIZE_BYTES;
    const end = start + sizeAt(bytes, at + CLUSTER_ID.length);
    if (end > bytes.length) break;
    const frame = frameIn(bytes.subarray(start, end));
    if (frame) frames.push(frame);
    at = end;
  }
  return { frames, completeFramesBytes: frames.length === 0 ? 0 : at };
}

function frameIn(cluster: Buffer): TimedFrame | undefined {
  const [timestampId, blockId] = [Number.parseInt(ID.timestamp, 16), Number.parseInt(ID.block, 16)];
  if (cluster[0] !== timestampId) return undefined;
  const timeEnd = 1 + SIZE_BYTES + sizeAt(cluster, 1);
  if (cluster[timeEnd] !== blockId) return undefined;
  const jpeg = cluster.subarray(timeEnd + 1 + SIZE_BYTES + BLOCK_HEADER.length);
  return { atMs: cluster.readUIntBE(1 + SIZE_BYTES, timeEnd - 1 - SIZE_BYTES), jpeg };
}

function encodeElement(id: string, content: readonly Buffer[]): Buffer {
  const contentBytes = content.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([elementHeader(id, contentBytes), ...content]);
}

/** The header of an element: its id and size. */
function elementHeader(id: string, contentBytes: number): Buffer {
  const size = Buffer.alloc(SIZE_BYTES);
  size.writeUIntBE(contentBytes, 2, 6);
  size[0] = 0x01;
  return Buffer.concat([Buffer.from(id, 'hex'), size]);
}

const sizeAt = (bytes: Buffer, at: number): number => bytes.readUIntBE(at + 2, 6);

function uint(value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUIntBE(value, 0, 6);
  return bytes;
}
