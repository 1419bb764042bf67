// Short-lived ffmpeg processes at low priority, a few at once: frames of slices in, a fragment of each out. What they are
// told is measured (bitrate, colours, exact times); a changed flag needs the suite of decoded pixels.
import { spawn } from 'node:child_process';
import { type FileHandle, open } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { withDeadline } from '../../kit/wait.ts';
import { cutAtKeys, type Fragment, takeApart } from './fmp4.ts';
import type { Size } from './matroska.ts';

const ENCODE_MS = 60_000;
/** For each slice more. */
const ENCODE_MORE_MS = 10_000;
/** Between two slices of one process, and for how long a short one counts: the budget of bits is then as full as at the first. */
const APART_MS = 2_500;
const SLICE_LEAST_MS = 6_000;
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

/** The frames of one slice: their journal, and when each was painted. */
export interface Footage {
  readonly path: string;
  readonly times: readonly number[];
  readonly size: Size;
}

const FROM_LIST = ['-protocol_whitelist', 'file,pipe', '-f', 'concat', '-safe', '0', '-i', 'pipe:0'];

/** From the first frame of a slice to that of the next. */
const spanOf = ({ times }: Footage): number =>
  Math.max(SLICE_LEAST_MS, (times.at(-1) ?? 0) - (times[0] ?? 0)) + APART_MS;

/** The journals as ffmpeg's concat reads them, one behind the other. */
function listOf(all: readonly Footage[]): string {
  const entries = all.map(one => `file 'file:${one.path.replaceAll("'", "'\\''")}'\nduration ${spanOf(one)}ms\n`);
  return `ffconcat version 1.0\n${entries.join('')}`;
}

/** When each slice begins there, in seconds. */
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

/** What it reads: a file from its beginning, or bytes. */
type Input = FileHandle | readonly Buffer[];

export class Ffmpeg {
  readonly #path: string;
  readonly #atOnce: number;
  readonly #waiting: Array<() => void> = [];
  #running = 0;

  constructor(path = 'ffmpeg', atOnce = 1) {
    this.#path = path;
    this.#atOnce = atOnce;
  }

  /** A fragment of each, encoded by one process as if each were alone. It reads them; we never do. */
  async encode(all: readonly Footage[], signal?: AbortSignal): Promise<readonly Fragment[]> {
    const [first] = all;
    if (!first) return [];
    const one = all.length === 1 ? await open(first.path, 'r') : undefined;
    try {
      const input = one ? ['-f', 'matroska', '-i', 'pipe:0'] : FROM_LIST;
      const keys = one ? [] : ['-force_key_frames', keyTimes(all)];
      const args = [...input, ...TIMES, '-vf', COLOURS, ...keys, ...rated(first.size), ...ENCODE];
      const counts = all.map(({ times }) => times.length);
      const samples = counts.reduce((sum, count) => sum + count, 0);
      const deadlineMs = ENCODE_MS + ENCODE_MORE_MS * (all.length - 1);
      const fragment = await this.#fragment(args, one ?? [Buffer.from(listOf(all))], samples, deadlineMs, signal);
      return one ? [fragment] : cutAtKeys(fragment, counts);
    } finally {
      await one?.close();
    }
  }

  /** A segment that was encoded in one size, on a larger canvas: top left, black beside it. */
  enlarge(segment: readonly Buffer[], samples: number, canvas: Size, signal?: AbortSignal): Promise<Fragment> {
    const pad = `pad=${canvas.width}:${canvas.height}:0:0,format=yuv420p`;
    const args = ['-f', 'mp4', '-i', 'pipe:0', ...TIMES, '-vf', pad, ...rated(canvas), ...ENCODE];
    return this.inTurn(() => this.#fragment(args, segment, samples, ENCODE_MS, signal));
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
    const fragment = takeApart(await withDeadline(deadlineMs, 'ffmpeg to encode a segment', run, signal));
    if (fragment.sizes.length !== samples)
      throw new Error(`ffmpeg encoded ${fragment.sizes.length} frames of ${samples}`);
    return fragment;
  }

  async #run(args: readonly string[], input: Input, signal: AbortSignal): Promise<Buffer> {
    const child = spawn('nice', ['-n', '10', this.#path, '-v', 'error', '-nostdin', ...args], {
      stdio: ['fd' in input ? input.fd : 'pipe', 'pipe', 'pipe'],
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
      signal,
      killSignal: 'SIGKILL',
    });
    const exited = new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    const { stdin, stdout, stderr } = child;
    if (!stdout || !stderr) throw new Error('ffmpeg has no output');
    stdin?.on('error', () => {}); // it ended early: its exit says why
    if (!('fd' in input)) for (const part of input) stdin?.write(part);
    stdin?.end();
    const [code, output, errors] = await Promise.all([exited, buffer(stdout), buffer(stderr)]);
    if (code === 0) return output;
    if (code === 127) throw new EncoderMissing(`${this.#path} was not found`);
    throw new Error(`ffmpeg ended with ${code}: ${errors.toString('utf8').slice(-STDERR_SHOWN).trim()}`);
  }
}
