// Decodes recordings with ffmpeg, and returns the time and the color of every frame.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

export interface RecordedFrame {
  /** The time of the frame, in seconds. */
  readonly at: number;
  readonly colour: readonly [number, number, number];
}

const OUTPUT_BYTES_MAX = 256 * 1024 ** 2;

/**
 * Returns the time of each frame, and its color at one position. `x` and `y` are fractions of the width and the height.
 */
export function framesOf(film: Buffer, x = 0.5, y = 0.5): readonly RecordedFrame[] {
  const cropFilter = `crop=2:2:floor(iw*${x}/2)*2:floor(ih*${y}/2)*2`;
  const rawArgs = [
    '-fps_mode',
    'passthrough',
    '-enc_time_base',
    '1:1000',
    '-pix_fmt',
    'rgb24',
    '-f',
    'rawvideo',
    'pipe:1',
  ];
  const pixels = run('ffmpeg', ['-v', 'error', '-i', 'pipe:0', '-vf', cropFilter, ...rawArgs], film);
  const times = timesOf(film);
  assert.equal(pixels.length, times.length * 12, 'every frame must be decoded');
  return times.map((at, index) => {
    const [r = 0, g = 0, b = 0] = pixels.subarray(index * 12, index * 12 + 3);
    return { at, colour: [r, g, b] };
  });
}

/** Returns the color at one position of a JPEG. `x` and `y` are fractions of the width and the height. */
export function colourOf(jpeg: Buffer, x = 0.5, y = 0.5): readonly [number, number, number] {
  const cropFilter = `crop=2:2:floor(iw*${x}/2)*2:floor(ih*${y}/2)*2`;
  const cropArgs = ['-vf', cropFilter, '-pix_fmt', 'rgb24', '-f', 'rawvideo', 'pipe:1'];
  const [r = 0, g = 0, b = 0] = run('ffmpeg', ['-v', 'error', '-f', 'mjpeg', '-i', 'pipe:0', ...cropArgs], jpeg);
  return [r, g, b];
}

export function timesOf(film: Buffer): readonly number[] {
  const ffprobeArgs = [
    '-v',
    'error',
    '-select_streams',
    'v',
    '-show_entries',
    'packet=pts_time',
    '-of',
    'csv=p=0',
    '-i',
    'pipe:0',
  ];
  return run('ffprobe', ffprobeArgs, film)
    .toString()
    .trim()
    .split('\n')
    .map(line => Number.parseFloat(line))
    .filter(Number.isFinite);
}

export function durationOf(film: Buffer): number {
  const ffprobeArgs = ['-v', 'error', '-show_entries', 'format=duration', '-of', 'csv=p=0', '-i', 'pipe:0'];
  return Number(run('ffprobe', ffprobeArgs, film).toString().trim());
}

/** Runs the program. Fails if it prints a warning or an error. */
function run(program: string, args: readonly string[], input: Buffer): Buffer {
  const { stdout, stderr, status } = spawnSync(program, args, { input, maxBuffer: OUTPUT_BYTES_MAX });
  assert.equal(stderr.toString(), '', program);
  assert.equal(status, 0, program);
  return stdout;
}

export const isSimilarColour = (seen: readonly number[], expected: readonly number[]): boolean =>
  expected.every((value, index) => Math.abs(value - (seen[index] ?? 0)) <= 12);
