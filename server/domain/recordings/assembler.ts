// Assembles MP4 files from stored segments: a request writes a row and returns, and a clock task does the work. The
// task may be killed and repeated at any time.
import { Buffer } from 'node:buffer';
import type { Artifacts, ByteRange } from '../../engines/artifacts/artifacts.ts';
import type { ArtifactKey } from '../../engines/artifacts/keys.ts';
import type { Extent, ScratchFile } from '../../engines/artifacts/scratch-file.ts';
import type { Staging } from '../../engines/artifacts/staging.ts';
import type { Ffmpeg } from '../../engines/recorder/ffmpeg.ts';
import type { Fragment } from '../../engines/recorder/fmp4.ts';
import type { Mp4Head, Mp4Segment } from '../../engines/recorder/mp4.ts';
import type { RecordingFileRow, RecordingRows, SegmentRow } from '../../engines/store/rows/recordings.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { RecordingKeys, RecordingStorage } from './storage.ts';

const BATCH_MAX = 10;
const TRIES_MAX = 5;
/** How long an assembly waits for segments that are not stored yet. After this time, these segments are left out. */
const SEGMENT_WAIT_MAX_MS = 15 * 60_000;

export interface AssemblerParts extends Pick<Runtime, 'clock' | 'log' | 'host'> {
  readonly rows: RecordingRows;
  readonly artifacts: Artifacts;
  readonly keys: RecordingKeys;
  readonly storage: Pick<RecordingStorage, 'applicationOf'>;
  readonly staging: Pick<Staging, 'scratchFile'>;
  readonly ffmpeg: Pick<Ffmpeg, 'enlarge'>;
  readonly mp4Head: (init: Buffer, size: { width: number; height: number }, pieces: readonly Mp4Segment[]) => Mp4Head;
}

interface AssemblyInput {
  readonly app: ApplicationId;
  readonly segments: readonly SegmentRow[];
  readonly canvas: { readonly width: number; readonly height: number };
  /** Contains the coded frames of enlarged segments, which together can be larger than the memory of the machine. */
  readonly scratch: ScratchFile;
}

interface EnlargedSegment extends Pick<Fragment, 'init' | 'sizes'> {
  /** The position of the coded frames in the scratch file. */
  readonly payload: Extent;
}

type EnlargedSegments = ReadonlyMap<SegmentRow['sequence'], EnlargedSegment>;

export class Assembler {
  readonly #parts: AssemblerParts;

  constructor(parts: AssemblerParts) {
    this.#parts = parts;
  }

  /** Assembles pending files one at a time: none is urgent, and each requires reading a lot of data. */
  async reconcile(): Promise<{ assembled: number; failed: number }> {
    const { rows, host } = this.#parts;
    const counts = { assembled: 0, failed: 0 };
    for (const row of await rows.listPending(host, BATCH_MAX)) {
      const state = await this.#process(row);
      if (state === 'COMPLETED') counts.assembled++;
      if (state === 'FAILED') counts.failed++;
    }
    return counts;
  }

  async #process(row: RecordingFileRow): Promise<RecordingFileRow['state']> {
    const { rows, clock, log } = this.#parts;
    if (!(await this.#isReady(row))) return 'PENDING';
    try {
      const size = await this.#assemble(row);
      const now = clock.now();
      await rows.settle({ ...row, state: 'COMPLETED', size, completedAt: now }, now);
      return 'COMPLETED';
    } catch (error) {
      const attempts = row.attempts + 1;
      const state = attempts < TRIES_MAX ? 'PENDING' : 'FAILED';
      const { sessionId, page } = row;
      log.warn('recording.not_assembled', { sessionId, page, attempts, reason: reason(error) });
      await rows.settle({ ...row, state, attempts, failure: reason(error) }, clock.now());
      return state;
    }
  }

  /** Whether all segments are stored, or the wait for missing segments has lasted long enough. */
  async #isReady({ sessionId, page, requestedAt }: RecordingFileRow): Promise<boolean> {
    const pages = await this.#parts.rows.pages(sessionId);
    if (pages.find(one => one.page === page)?.stored) return true;
    return this.#parts.clock.now().getTime() - requestedAt.getTime() > SEGMENT_WAIT_MAX_MS;
  }

  async #assemble(row: RecordingFileRow): Promise<number> {
    const { rows, storage, staging } = this.#parts;
    const app = await storage.applicationOf(row.sessionId);
    const segments = await rows.segments(row.sessionId, row.page);
    if (!app || segments.length === 0) throw new Error('no segment of the recording is stored');
    const scratch = await staging.scratchFile();
    try {
      return await this.#store(row, { app, segments, canvas: canvasOf(segments), scratch });
    } finally {
      await scratch.close();
    }
  }

  async #store({ sessionId, page, assembly }: RecordingFileRow, assemblyInput: AssemblyInput): Promise<number> {
    const { artifacts, keys, mp4Head } = this.#parts;
    const { app, segments } = assemblyInput;
    const run = segments.find(
      ({ width, height }) => width === assemblyInput.canvas.width && height === assemblyInput.canvas.height,
    )?.run;
    const enlargement = await this.#enlargeAll(assemblyInput, run);
    const init = enlargement?.init ?? (await this.#readBytes(keys.init(app, sessionId, page, run ?? 0)));
    const { head, bytes } = mp4Head(init, assemblyInput.canvas, piecesOf(segments, enlargement?.segments));
    const body = this.#body(assemblyInput, head, enlargement?.segments);
    const { size } = await artifacts.put(keys.file(app, sessionId, page, assembly), body, { contentType: 'video/mp4' });
    if (size !== bytes)
      throw new Error(`the stored MP4 file has ${size} bytes, but its header describes ${bytes} bytes`);
    return size;
  }

  /**
   * A file has one frame size. If the page had several sizes, smaller segments are encoded again on the largest canvas.
   */
  async #enlargeAll(
    assemblyInput: AssemblyInput,
    run: number | undefined,
  ): Promise<{ init: Buffer; segments: EnlargedSegments } | undefined> {
    if (assemblyInput.segments.every(segment => segment.run === run)) return undefined;
    const enlargedSegments = new Map<number, EnlargedSegment>();
    const [firstSegment] = assemblyInput.segments;
    const init = firstSegment && run !== undefined ? await this.#readInit(assemblyInput, run) : undefined;
    for (const segment of assemblyInput.segments)
      if (segment.run !== run) enlargedSegments.set(segment.sequence, await this.#enlarge(assemblyInput, segment));
    const [firstEnlarged] = enlargedSegments.values();
    const sharedInit = init ?? firstEnlarged?.init ?? Buffer.alloc(0);
    if ([...enlargedSegments.values()].every(segment => segment.init.equals(sharedInit)))
      return { init: sharedInit, segments: enlargedSegments };
    for (const segment of assemblyInput.segments)
      enlargedSegments.set(segment.sequence, await this.#enlarge(assemblyInput, segment));
    const [reencodedFirst] = enlargedSegments.values();
    return { init: reencodedFirst?.init ?? Buffer.alloc(0), segments: enlargedSegments };
  }

  async #enlarge(assemblyInput: AssemblyInput, segment: SegmentRow): Promise<EnlargedSegment> {
    const inputBuffers = [
      await this.#readInit(assemblyInput, segment.run),
      await this.#readBytes(this.#keyOf(assemblyInput.app, segment)),
    ];
    const { init, sizes, payload } = await this.#parts.ffmpeg.enlarge(
      inputBuffers,
      segment.samples.sizes.length,
      assemblyInput.canvas,
    );
    // A copy, because `init` is a part of the buffer that also contains the frames.
    return { init: Buffer.from(init), sizes, payload: await assemblyInput.scratch.append(payload) };
  }

  #readInit({ app, segments: [first] }: AssemblyInput, run: number): Promise<Buffer> {
    if (!first) throw new Error('no segment of the recording is stored');
    return this.#readBytes(this.#parts.keys.init(app, first.sessionId, first.page, run));
  }

  async *#body(
    assemblyInput: AssemblyInput,
    head: Buffer,
    enlargedSegments?: EnlargedSegments,
  ): AsyncGenerator<Buffer> {
    yield head;
    for (const segment of assemblyInput.segments) {
      const payload = enlargedSegments?.get(segment.sequence)?.payload;
      const codedRange = { first: segment.payloadAt, last: segment.bytes - 1 };
      yield payload
        ? await assemblyInput.scratch.read(payload)
        : await this.#readBytes(this.#keyOf(assemblyInput.app, segment), codedRange);
    }
  }

  async #readBytes(key: ArtifactKey, range?: ByteRange): Promise<Buffer> {
    const bytes = await this.#parts.artifacts.read(key, range);
    if (!bytes) throw new Error(`${key} does not exist`);
    return bytes;
  }

  #keyOf(app: ApplicationId, { sessionId, page, sequence }: SegmentRow): ArtifactKey {
    return this.#parts.keys.segment(app, sessionId, page, sequence);
  }
}

const canvasOf = (segments: readonly SegmentRow[]) => ({
  width: Math.max(...segments.map(({ width }) => width)),
  height: Math.max(...segments.map(({ height }) => height)),
});

/** During a gap, the last frame before the gap is shown. Before the first segment, the first frame is shown. */
function piecesOf(segments: readonly SegmentRow[], enlargedSegments?: EnlargedSegments): Mp4Segment[] {
  return segments.map((segment, index) => {
    const next = segments[index + 1];
    const gapMs = next ? next.startMs - segment.startMs - segment.durationMs : 0;
    const { durationsMs } = segment.samples;
    const last = durationsMs.length - 1;
    const leadMs = index === 0 ? segment.startMs : 0;
    return {
      durationsMs: durationsMs.map((ms, at) => ms + (at === 0 ? leadMs : 0) + (at === last ? Math.max(0, gapMs) : 0)),
      sizes: enlargedSegments?.get(segment.sequence)?.sizes ?? segment.samples.sizes,
    };
  });
}
