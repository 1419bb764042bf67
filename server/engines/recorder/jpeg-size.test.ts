import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isTooLarge, jpegSize } from './jpeg-size.ts';

const frame = (width: number, height: number): string =>
  `ffc00011 08 ${hex(height)} ${hex(width)} 03 01 2200 02 1101 03 1101`;
const hex = (value: number): string => value.toString(16).padStart(4, '0');
const SCAN = 'ffda000c 03 0100 0211 0311 003f00 1234';

const jpeg = (...parts: readonly string[]): Buffer =>
  Buffer.from(`ffd8${[...parts].join('')}ffd9`.replaceAll(' ', ''), 'hex');

test('reads the size from the frame header', () => {
  assert.deepEqual(jpegSize(jpeg('ffe00004 0000', frame(1280, 720), SCAN)), { width: 1280, height: 720 });
});

test('returns no size for an image with two frame headers, because decoders may use either header', () => {
  assert.equal(jpegSize(jpeg(frame(64, 48), frame(60_000, 60_000), SCAN)), undefined);
});

test('returns no size if the frame header, the scan, the end marker or the height is missing', () => {
  assert.equal(jpegSize(jpeg(SCAN)), undefined);
  assert.equal(jpegSize(jpeg(frame(64, 48))), undefined);
  assert.equal(jpegSize(jpeg(frame(64, 0), SCAN)), undefined);
  assert.equal(jpegSize(jpeg(frame(64, 48), SCAN).subarray(0, -1)), undefined);
  assert.equal(jpegSize(Buffer.alloc(0)), undefined);
});

test('returns no size if too many segments come before the first scan', () => {
  assert.equal(jpegSize(jpeg('ffe00000'.repeat(100), frame(64, 48), SCAN)), undefined);
});

test('treats an image as too large if it has more than 16 Mi pixels, or more than 8192 pixels on a side', () => {
  assert.equal(isTooLarge({ width: 3840, height: 2160 }), false);
  assert.equal(isTooLarge({ width: 4096, height: 4096 }), false);
  assert.equal(isTooLarge({ width: 8000, height: 8000 }), true);
  assert.equal(isTooLarge({ width: 8193, height: 1 }), true);
});
