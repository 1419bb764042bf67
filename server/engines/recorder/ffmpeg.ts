// Short-lived ffmpeg processes at low priority, a few at once: frames in, one fragment out. What they are told is measured
// (bitrate, colours, exact times); a changed flag needs the suite of decoded pixels.
import { spawn } from 'node:child_process';
import { type FileHandle, open } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { withDeadline } from '../../kit/wait.ts';
import { type Fragment, takeApart } from './fmp4.ts';
import type { Size } from './matroska.ts';

const ENCODE_MS = 60_000;
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

  /** The frames of one segment, from their journal, as one fragment. It is read by ffmpeg and never by us. */
  async encode(path: string, samples: number, size: Size, signal?: AbortSignal): Promise<Fragment> {
    const args = ['-f', 'matroska', '-i', 'pipe:0', ...TIMES, '-vf', COLOURS, ...rated(size), ...ENCODE];
    const journal = await open(path, 'r');
    try {
      return await this.#fragment(args, journal, samples, signal);
    } finally {
      await journal.close();
    }
  }

  /** A segment that was encoded in one size, on a larger canvas: top left, black beside it. */
  enlarge(segment: readonly Buffer[], samples: number, canvas: Size, signal?: AbortSignal): Promise<Fragment> {
    const pad = `pad=${canvas.width}:${canvas.height}:0:0,format=yuv420p`;
    const args = ['-f', 'mp4', '-i', 'pipe:0', ...TIMES, '-vf', pad, ...rated(canvas), ...ENCODE];
    return this.#fragment(args, segment, samples, signal);
  }

  async #fragment(args: readonly string[], input: Input, samples: number, signal?: AbortSignal): Promise<Fragment> {
    await this.#turn();
    try {
      const output = await withDeadline(
        ENCODE_MS,
        'ffmpeg to encode a segment',
        inner => this.#run(args, input, inner),
        signal,
      );
      const fragment = takeApart(output);
      if (fragment.sizes.length !== samples)
        throw new Error(`ffmpeg encoded ${fragment.sizes.length} frames of ${samples}`);
      return fragment;
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  async #turn(): Promise<void> {
    while (this.#running >= this.#atOnce) await new Promise<void>(resolve => this.#waiting.push(resolve));
    this.#running++;
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
