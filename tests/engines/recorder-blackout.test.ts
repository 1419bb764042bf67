import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { blackout } from '../../server/engines/recorder/jpeg-blackout.ts';

const WIDTH = 332;
const HEIGHT = 204;

/** Returns a colorful JPEG image with fine detail. `more` contains additional encoder options. */
function makeJpeg(...more: string[]): Buffer {
  const source = `testsrc2=size=${WIDTH}x${HEIGHT},noise=alls=30`;
  const { stdout, stderr } = spawnSync('ffmpeg', [
    ...['-v', 'error', '-f', 'lavfi', '-i', source, '-frames:v', '1', '-pix_fmt', 'yuvj420p', '-q:v', '3', ...more],
    ...['-f', 'mjpeg', 'pipe:1'],
  ]);
  assert.equal(stderr.toString(), '');
  return stdout;
}

function pixelsOf(jpeg: Buffer): Buffer {
  const options = ['-v', 'error', '-f', 'mjpeg', '-i', 'pipe:0', '-pix_fmt', 'yuvj444p', '-f', 'rawvideo', 'pipe:1'];
  const { stdout, stderr } = spawnSync('ffmpeg', options, { input: jpeg });
  assert.equal(stderr.toString(), '');
  return stdout;
}

for (const huffman of ['default', 'optimal'])
  test(`blackout blackens the given rectangles and leaves blocks that they do not touch unchanged (${huffman} Huffman codes)`, () => {
    const jpeg = makeJpeg('-huffman', huffman);
    const maskedJpeg = blackout(jpeg, [
      { x: 100, y: 50, width: 60, height: 20 },
      { x: 320, y: 190, width: 900, height: 900 },
    ]);
    assert.ok(maskedJpeg);
    const [pixelsBefore, pixelsAfter] = [pixelsOf(jpeg), pixelsOf(maskedJpeg)];
    for (let y = 0; y < HEIGHT; y++)
      for (let x = 0; x < WIDTH; x++) {
        const isCovered = (x >= 100 && x < 160 && y >= 50 && y < 70) || (x >= 320 && y >= 190);
        // False if the pixel is in a block of 8x8 pixels that one of the rectangles touches.
        const isUntouched = (x < 96 || x >= 160 || y < 48 || y >= 72) && (x < 320 || y < 184);
        if (isCovered) assert.ok((pixelsAfter[y * WIDTH + x] ?? 255) < 4, `${x},${y}`);
        else if (isUntouched) assert.equal(pixelsAfter[y * WIDTH + x], pixelsBefore[y * WIDTH + x], `${x},${y}`);
      }
  });

test('blackout leaves the image unchanged if there are no rectangles', () => {
  const jpeg = makeJpeg();
  assert.ok(pixelsOf(blackout(jpeg, []) ?? jpeg.subarray(0, 2)).equals(pixelsOf(jpeg)));
});

test('blackout returns undefined for images that cannot be masked', () => {
  assert.equal(blackout(Buffer.from('GIF89a'), []), undefined);
  const jpeg = makeJpeg();
  const progressiveJpeg = Buffer.from(jpeg);
  progressiveJpeg[jpeg.indexOf(Buffer.from([0xff, 0xc0])) + 1] = 0xc2;
  assert.equal(blackout(progressiveJpeg, []), undefined);
});
