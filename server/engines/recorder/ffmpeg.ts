// Runs short-lived ffmpeg processes, a limited number at once. Each reads the frames of one or more segments and writes
// one fragment for each segment. ffmpeg decodes untrusted pictures, so it runs confined, and its output is limited. The
// effects of the flags were measured (bitrate, colors, exact times). After changing a flag, run the tests that compare
// decoded pixels.
import { type ChildProcess, spawn } from 'node:child_process';
import { type FileHandle, open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { withDeadline } from '../../kit/wait.ts';
import { type Fragment, parseFragment, splitAtKeyFrames } from './fmp4.ts';
import { FRAME_PIXELS_MAX } from './jpeg-size.ts';
import type { Size } from './matroska.ts';
import { SEGMENT_MS } from './page-journal.ts';

/** Limits for each process: memory in bytes, and CPU time in seconds. The largest picture needs 420 MB of memory. */
export const ENCODER_BOUNDS = { memoryBytes: 1024 ** 3, cpuSeconds: 180 } as const;
/** Maximum output of a process. Eight segments with the largest picture are smaller. */
const OUTPUT_BYTES_MAX = 128 * 1024 ** 2;
const STDERR_BYTES_MAX = 1024 ** 2;
const ENCODE_TIMEOUT_MS = 60_000;
/** Added to ENCODE_TIMEOUT_MS for each further segment in the process. */
const EXTRA_SEGMENT_TIMEOUT_MS = 10_000;
/**
 * Time between two segments that are encoded in one process. The rate control buffer refills completely during this
 * time.
 */
const SEGMENT_SPACING_MS = 2_500;
/**
 * Minimum length of a segment that shares a process with others, so that the rate control buffer refills. It applies
 * even if full segments are shorter.
 */
const SHARED_SEGMENT_MIN_MS = Math.max(6_000, SEGMENT_MS);
const STDERR_CHARACTERS_MAX = 500;

/** Converts JPEG's full-range BT.601 to the BT.709 that players expect for HD. Odd sizes are padded by one line. */
const COLOUR_FILTERS =
  'scale=in_range=full:in_color_matrix=bt601:out_range=tv:out_color_matrix=bt709:flags=fast_bilinear,pad=ceil(iw/2)*2:ceil(ih/2)*2,format=yuv420p';
/**
 * The picture size for which BASE_RATE_KBIT applies. That rate limits a minute of motion to 2 MB. Larger pictures get a
 * higher rate.
 */
const BASE_RATE_PIXELS = 1280 * 720;
const BASE_RATE_KBIT = 150;
/** Rate control buffer, which is the budget for the first picture of a segment. It keeps text of 12 px readable. */
const RATE_BUFFER_KBIT = 1_100;

const ENCODE_OPTIONS = [
  ...['-c:v', 'libx264', '-preset', 'veryfast', '-tune', 'stillimage', '-crf', '27', '-bf', '0'],
  ...['-me_range', '64'], // scrolling moves content by more than the default range of 16 px between frames
  ...['-g', '100000', '-sc_threshold', '0', '-threads', '1'],
  ...['-level', '4.1'], // otherwise x264 derives the level from the rate, and init segments differ
  ...['-colorspace', 'bt709', '-color_primaries', 'bt709', '-color_trc', 'bt709', '-color_range', 'tv'],
  ...[
    '-video_track_timescale',
    '90000',
    '-movflags',
    '+empty_moov+default_base_moof+frag_custom',
    '-f',
    'mp4',
    'pipe:1',
  ],
];
const TIME_OPTIONS = ['-fps_mode', 'passthrough', '-enc_time_base', '1:1000'];

function rateLimits({ width, height }: Size): readonly string[] {
  const rateFactor = Math.max(1, (width * height) / BASE_RATE_PIXELS);
  const kbit = (rate: number): string => `${Math.round(rate * rateFactor)}k`;
  return ['-maxrate', kbit(BASE_RATE_KBIT), '-bufsize', kbit(RATE_BUFFER_KBIT)];
}

/**
 * The raw segment to encode: the path of its journal, the paint time of each frame in milliseconds, and the picture
 * size.
 */
export interface Footage {
  readonly path: string;
  readonly times: readonly number[];
  readonly size: Size;
}

/**
 * Restricts the input to MJPEG in Matroska, of limited size, read from descriptors. Only one thread is used, so that
 * the result is the same on every machine.
 */
const FRAME_INPUT_OPTIONS = [
  ...['-threads', '1', '-protocol_whitelist', 'pipe', '-format_whitelist', 'concat,matroska,webm'],
  ...['-codec_whitelist', 'mjpeg', '-max_pixels', String(FRAME_PIXELS_MAX)],
];
const SINGLE_FILE_INPUT_OPTIONS = [...FRAME_INPUT_OPTIONS, '-f', 'matroska', '-i', 'pipe:0'];
const LIST_INPUT_OPTIONS = [...FRAME_INPUT_OPTIONS, '-f', 'concat', '-safe', '0', '-i', 'pipe:0'];
const SEGMENT_INPUT_OPTIONS = ['-threads', '1', '-protocol_whitelist', 'pipe', '-f', 'mp4', '-i', 'pipe:0'];
/** The descriptor of the first journal. Lower descriptors are the standard streams and the one that the jail uses. */
const FIRST_FOOTAGE_DESCRIPTOR = 4;

/** Time from the first frame of a segment to the first frame of the next segment, in milliseconds. */
const spanOf = ({ times }: Footage): number =>
  Math.max(SHARED_SEGMENT_MIN_MS, (times.at(-1) ?? 0) - (times[0] ?? 0)) + SEGMENT_SPACING_MS;

/**
 * Returns the list of journals for ffmpeg's concat demuxer. ffmpeg gets the journals as open descriptors, because it
 * has no access to any folder.
 */
function concatListOf(footages: readonly Footage[]): string {
  const entries = footages.map(
    (one, index) => `file 'pipe:${FIRST_FOOTAGE_DESCRIPTOR + index}'\nduration ${spanOf(one)}ms\n`,
  );
  return `ffconcat version 1.0\n${entries.join('')}`;
}

/** Returns the start of each segment in the concatenated input, in seconds, separated by commas. */
function keyTimesOf(footages: readonly Footage[]): string {
  let atMs = 0;
  const starts = footages.map(one => {
    atMs += spanOf(one);
    return (atMs - spanOf(one)) / 1000;
  });
  return starts.join(',');
}

export class EncoderMissing extends Error {
  override readonly name = 'EncoderMissing';
}

/** The input of a process: standard input (a file or bytes), and further files that are passed as descriptors. */
interface EncoderInput {
  readonly stdin: FileHandle | readonly Buffer[];
  readonly files: readonly FileHandle[];
}

/** Returns the command that runs a program in a jail. Undefined if the program is not installed. */
export type Confinement = (
  program: string,
  args: readonly string[],
) => { readonly file: string; readonly args: readonly string[] } | undefined;

export class Ffmpeg {
  readonly #confine: Confinement;
  readonly #path: string;
  readonly #processesMax: number;
  readonly #turnWaiters: Array<() => void> = [];
  #running = 0;

  constructor(confine: Confinement, path = 'ffmpeg', processesMax = 1) {
    this.#confine = confine;
    this.#path = path;
    this.#processesMax = processesMax;
  }

  /** Encodes segments in one process, each as if it were alone. */
  async encode(footages: readonly Footage[], signal?: AbortSignal): Promise<readonly Fragment[]> {
    const [first] = footages;
    if (!first) return [];
    const openFiles: FileHandle[] = [];
    try {
      for (const { path } of footages) openFiles.push(await open(path, 'r'));
      const [firstFile] = openFiles;
      const isSingleSegment = firstFile !== undefined && footages.length === 1;
      const input = isSingleSegment
        ? { stdin: firstFile, files: [] }
        : { stdin: [Buffer.from(concatListOf(footages))], files: openFiles };
      const [inputOptions, keyFrameOptions] = isSingleSegment
        ? [SINGLE_FILE_INPUT_OPTIONS, []]
        : [LIST_INPUT_OPTIONS, ['-force_key_frames', keyTimesOf(footages)]];
      const args = [
        ...inputOptions,
        ...TIME_OPTIONS,
        '-vf',
        COLOUR_FILTERS,
        ...keyFrameOptions,
        ...rateLimits(first.size),
        ...ENCODE_OPTIONS,
      ];
      const frameCounts = footages.map(({ times }) => times.length);
      const sampleCount = frameCounts.reduce((sum, count) => sum + count, 0);
      const timeoutMs = ENCODE_TIMEOUT_MS + EXTRA_SEGMENT_TIMEOUT_MS * (footages.length - 1);
      const fragment = await this.#encodeFragment(args, input, sampleCount, timeoutMs, signal);
      return isSingleSegment ? [fragment] : splitAtKeyFrames(fragment, frameCounts);
    } finally {
      await Promise.all(openFiles.map(file => file.close()));
    }
  }

  /** Encodes a segment again on a larger canvas: the picture at the top left, the rest black. */
  enlarge(segment: readonly Buffer[], sampleCount: number, canvas: Size, signal?: AbortSignal): Promise<Fragment> {
    const pad = `pad=${canvas.width}:${canvas.height}:0:0,format=yuv420p`;
    const args = [...SEGMENT_INPUT_OPTIONS, ...TIME_OPTIONS, '-vf', pad, ...rateLimits(canvas), ...ENCODE_OPTIONS];
    const input = { stdin: segment, files: [] };
    return this.inTurn(() => this.#encodeFragment(args, input, sampleCount, ENCODE_TIMEOUT_MS, signal));
  }

  /** Runs a step when fewer than the maximum number of steps are running. Steps wait in order. */
  async inTurn<T>(step: () => Promise<T>): Promise<T> {
    if (this.#running < this.#processesMax) this.#running++;
    else await new Promise<void>(resolve => this.#turnWaiters.push(resolve));
    try {
      return await step();
    } finally {
      const nextWaiter = this.#turnWaiters.shift();
      if (nextWaiter) nextWaiter();
      else this.#running--;
    }
  }

  async #encodeFragment(
    args: readonly string[],
    input: EncoderInput,
    samples: number,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Fragment> {
    const run = (inner: AbortSignal): Promise<Buffer> => this.#run(args, input, inner);
    return parseFragment(await withDeadline(timeoutMs, 'ffmpeg to encode a segment', run, signal), samples);
  }

  async #run(args: readonly string[], { stdin, files }: EncoderInput, signal: AbortSignal): Promise<Buffer> {
    signal.throwIfAborted();
    const command = this.#confine(this.#path, ['-v', 'error', '-nostdin', '-filter_threads', '1', ...args]);
    if (!command) throw new EncoderMissing(`${this.#path} was not found; install ffmpeg`);
    const input = 'fd' in stdin ? stdin.fd : 'pipe';
    const child = spawn(command.file, command.args, {
      stdio: [input, 'pipe', 'pipe', 'ignore', ...files.map(({ fd }) => fd)],
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
      cwd: '/',
      // Creates a process group, so that the programs of the jail and ffmpeg can be killed together.
      detached: true,
    });
    const stop = (): void => killGroup(child);
    signal.addEventListener('abort', stop, { once: true });
    try {
      const exitCodePromise = new Promise<number | null>((resolve, reject) => {
        child.once('error', reject);
        child.once('close', resolve);
      });
      if (!child.stdout || !child.stderr) throw new Error('ffmpeg was started without output pipes');
      child.stdin?.on('error', () => {}); // a failed write shows in the exit code
      if (!('fd' in stdin)) for (const part of stdin) child.stdin?.write(part);
      child.stdin?.end();
      const [code, output, stderrBytes] = await Promise.all([
        exitCodePromise,
        readAll(child.stdout, OUTPUT_BYTES_MAX, stop),
        readAll(child.stderr, STDERR_BYTES_MAX, stop),
      ]);
      signal.throwIfAborted();
      if (code === 0) return output;
      const message = stderrBytes.toString('utf8').slice(-STDERR_CHARACTERS_MAX).trim();
      if (code === 127) throw new EncoderMissing(`${this.#path} cannot be run: ${message}`);
      throw new Error(`ffmpeg ${code === null ? 'was killed' : `exited with code ${code}`}: ${message}`);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}

/** Reads the whole stream. Calls `stop` if it is longer than `bytesMax`. */
async function readAll(stream: Readable, bytesMax: number, stop: () => void): Promise<Buffer> {
  const parts: Buffer[] = [];
  let readBytes = 0;
  for await (const part of stream) {
    readBytes += part.length;
    if (readBytes <= bytesMax) parts.push(part);
    else stop();
  }
  return Buffer.concat(parts);
}

function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The process has already ended.
  }
}
