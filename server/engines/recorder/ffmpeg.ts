// Short-lived ffmpeg processes, a few at once: frames of segments in, a fragment of each out. They decode what a page painted,
// so each runs confined by whoever opened the recorder, and what it writes is bounded. What they are told is measured
// (bitrate, colours, exact times); a changed flag needs the suite of decoded pixels.
import { type ChildProcess, spawn } from 'node:child_process';
import { type FileHandle, open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { withDeadline } from '../../kit/wait.ts';
import { cutAtKeys, type Fragment, takeApart } from './fmp4.ts';
import { PICTURE_PIXELS_MAX } from './jpeg-size.ts';
import type { Size } from './matroska.ts';

/** Of each process; the largest picture takes 420 MB of it. */
export const ENCODER_BOUNDS = { memoryBytes: 1024 ** 3, cpuSeconds: 180 } as const;
/** What a process may write: eight segments of the largest picture take less. */
const OUTPUT_BYTES_MAX = 128 * 1024 ** 2;
const STDERR_BYTES_MAX = 1024 ** 2;
const ENCODE_MS = 60_000;
/** For each segment more. */
const ENCODE_MORE_MS = 10_000;
/** Between two segments of one process, and for how long a short one counts: the budget of bits is then as full as at the first. */
const APART_MS = 2_500;
const SEGMENT_LEAST_MS = 6_000;
const STDERR_SHOWN = 500;

/** JPEG's full-range BT.601 becomes what players expect of HD; odd sizes get one more line. */
const COLOURS =
  'scale=in_range=full:in_color_matrix=bt601:out_range=tv:out_color_matrix=bt709:flags=fast_bilinear,pad=ceil(iw/2)*2:ceil(ih/2)*2,format=yuv420p';
/** Of a picture of this size, so that a minute of whatever moves is at most 2 MB; larger pictures may have more. */
const RATED_PIXELS = 1280 * 720;
const RATE_KBIT = 150;
/** What the first picture of a segment may take: text of 12 px stays readable. */
const BUFFER_KBIT = 1_100;

const ENCODE = [
  ...['-c:v', 'libx264', '-preset', 'veryfast', '-tune', 'stillimage', '-crf', '27', '-bf', '0'],
  ...['-me_range', '64'], // what scrolls goes further than 16 px from one frame to the next
  ...['-g', '100000', '-sc_threshold', '0', '-threads', '1'],
  ...['-level', '4.1'], // x264 would guess one from the rate, and the init segments would differ
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
const TIMES = ['-fps_mode', 'passthrough', '-enc_time_base', '1:1000'];

function rated({ width, height }: Size): readonly string[] {
  const share = Math.max(1, (width * height) / RATED_PIXELS);
  const kbit = (most: number): string => `${Math.round(most * share)}k`;
  return ['-maxrate', kbit(RATE_KBIT), '-bufsize', kbit(BUFFER_KBIT)];
}

/** The frames of one segment: their journal, and when each was painted. */
export interface Footage {
  readonly path: string;
  readonly times: readonly number[];
  readonly size: Size;
}

/** Of whatever a page sends: only pictures of ours, only so large, only from descriptors; as many threads on every machine. */
const FROM_FRAMES = [
  ...['-threads', '1', '-protocol_whitelist', 'pipe', '-format_whitelist', 'concat,matroska,webm'],
  ...['-codec_whitelist', 'mjpeg', '-max_pixels', String(PICTURE_PIXELS_MAX)],
];
const FROM_FRAMES_OF_ONE = [...FROM_FRAMES, '-f', 'matroska', '-i', 'pipe:0'];
const FROM_LIST = [...FROM_FRAMES, '-f', 'concat', '-safe', '0', '-i', 'pipe:0'];
const FROM_SEGMENT = ['-threads', '1', '-protocol_whitelist', 'pipe', '-f', 'mp4', '-i', 'pipe:0'];
/** The first descriptor after those that a confined process has already. */
const FOOTAGE_DESCRIPTOR = 4;

/** From the first frame of a segment to that of the next. */
const spanOf = ({ times }: Footage): number =>
  Math.max(SEGMENT_LEAST_MS, (times.at(-1) ?? 0) - (times[0] ?? 0)) + APART_MS;

/** The journals as ffmpeg's concat reads them, one behind the other. It has them open: it sees no folder. */
function listOf(all: readonly Footage[]): string {
  const entries = all.map((one, index) => `file 'pipe:${FOOTAGE_DESCRIPTOR + index}'\nduration ${spanOf(one)}ms\n`);
  return `ffconcat version 1.0\n${entries.join('')}`;
}

/** When each segment begins there, in seconds. */
function keyTimes(all: readonly Footage[]): string {
  let atMs = 0;
  const starts = all.map(one => {
    atMs += spanOf(one);
    return (atMs - spanOf(one)) / 1000;
  });
  return starts.join(',');
}

export class EncoderMissing extends Error {
  override readonly name = 'EncoderMissing';
}

/** What it reads from its input: a file from its beginning, or bytes; and the files that these name. */
interface Input {
  readonly stdin: FileHandle | readonly Buffer[];
  readonly files: readonly FileHandle[];
}

/** The command that runs a program with these arguments where it can do no harm; undefined when it is not installed. */
export type Confine = (
  program: string,
  args: readonly string[],
) => { readonly file: string; readonly args: readonly string[] } | undefined;

export class Ffmpeg {
  readonly #confine: Confine;
  readonly #path: string;
  readonly #atOnce: number;
  readonly #waiting: Array<() => void> = [];
  #running = 0;

  constructor(confine: Confine, path = 'ffmpeg', atOnce = 1) {
    this.#confine = confine;
    this.#path = path;
    this.#atOnce = atOnce;
  }

  /** A fragment of each, encoded by one process as if each were alone. It reads them; we never do. */
  async encode(all: readonly Footage[], signal?: AbortSignal): Promise<readonly Fragment[]> {
    const [first] = all;
    if (!first) return [];
    const opened: FileHandle[] = [];
    try {
      for (const { path } of all) opened.push(await open(path, 'r'));
      const [one] = opened;
      const isAlone = one !== undefined && all.length === 1;
      const input = isAlone ? { stdin: one, files: [] } : { stdin: [Buffer.from(listOf(all))], files: opened };
      const [from, keys] = isAlone ? [FROM_FRAMES_OF_ONE, []] : [FROM_LIST, ['-force_key_frames', keyTimes(all)]];
      const args = [...from, ...TIMES, '-vf', COLOURS, ...keys, ...rated(first.size), ...ENCODE];
      const counts = all.map(({ times }) => times.length);
      const samples = counts.reduce((sum, count) => sum + count, 0);
      const deadlineMs = ENCODE_MS + ENCODE_MORE_MS * (all.length - 1);
      const fragment = await this.#fragment(args, input, samples, deadlineMs, signal);
      return isAlone ? [fragment] : cutAtKeys(fragment, counts);
    } finally {
      await Promise.all(opened.map(file => file.close()));
    }
  }

  /** A segment that was encoded in one size, on a larger canvas: top left, black beside it. */
  enlarge(segment: readonly Buffer[], samples: number, canvas: Size, signal?: AbortSignal): Promise<Fragment> {
    const pad = `pad=${canvas.width}:${canvas.height}:0:0,format=yuv420p`;
    const args = [...FROM_SEGMENT, ...TIMES, '-vf', pad, ...rated(canvas), ...ENCODE];
    const input = { stdin: segment, files: [] };
    return this.inTurn(() => this.#fragment(args, input, samples, ENCODE_MS, signal));
  }

  /** A few at once, in the order in which they asked. */
  async inTurn<T>(step: () => Promise<T>): Promise<T> {
    while (this.#running >= this.#atOnce) await new Promise<void>(resolve => this.#waiting.push(resolve));
    this.#running++;
    try {
      return await step();
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  async #fragment(
    args: readonly string[],
    input: Input,
    samples: number,
    deadlineMs: number,
    signal?: AbortSignal,
  ): Promise<Fragment> {
    const run = (inner: AbortSignal): Promise<Buffer> => this.#run(args, input, inner);
    return takeApart(await withDeadline(deadlineMs, 'ffmpeg to encode a segment', run, signal), samples);
  }

  async #run(args: readonly string[], { stdin, files }: Input, signal: AbortSignal): Promise<Buffer> {
    signal.throwIfAborted();
    const command = this.#confine(this.#path, ['-v', 'error', '-nostdin', '-filter_threads', '1', ...args]);
    if (!command) throw new EncoderMissing(`${this.#path} was not found`);
    const input = 'fd' in stdin ? stdin.fd : 'pipe';
    const child = spawn(command.file, command.args, {
      stdio: [input, 'pipe', 'pipe', 'ignore', ...files.map(({ fd }) => fd)],
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
      cwd: '/',
      // A process group of its own, which all of the chain stays in.
      detached: true,
    });
    const stop = (): void => killGroup(child);
    signal.addEventListener('abort', stop, { once: true });
    try {
      const exited = new Promise<number | null>((resolve, reject) => {
        child.once('error', reject);
        child.once('close', resolve);
      });
      if (!child.stdout || !child.stderr) throw new Error('ffmpeg has no output');
      child.stdin?.on('error', () => {}); // it ended early: its exit says why
      if (!('fd' in stdin)) for (const part of stdin) child.stdin?.write(part);
      child.stdin?.end();
      const [code, output, errors] = await Promise.all([
        exited,
        collected(child.stdout, OUTPUT_BYTES_MAX, stop),
        collected(child.stderr, STDERR_BYTES_MAX, stop),
      ]);
      signal.throwIfAborted();
      if (code === 0) return output;
      const said = errors.toString('utf8').slice(-STDERR_SHOWN).trim();
      if (code === 127) throw new EncoderMissing(`${this.#path} cannot be run: ${said}`);
      throw new Error(`ffmpeg ended with ${code}: ${said}`);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}

/** All of it; what writes more is stopped, and fails by that. */
async function collected(stream: Readable, bytesMax: number, stop: () => void): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of stream) {
    bytes += part.length;
    if (bytes <= bytesMax) parts.push(part);
    else stop();
  }
  return Buffer.concat(parts);
}

function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
