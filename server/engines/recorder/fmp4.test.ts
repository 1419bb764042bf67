import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BadMedia, box, fullBox, parseFragment, u32 } from './fmp4.ts';

/** A fragment whose header declares a number of frames without describing them. */
const promising = (frames: number): Buffer => {
  const traf = box('traf', [fullBox('tfhd', 0, 0x10, [u32(1), u32(0)]), fullBox('trun', 0, 0, [u32(frames)])]);
  return Buffer.concat([box('moov', []), box('moof', [traf]), box('mdat', [])]);
};

test('rejects a fragment that declares an unexpected number of frames before reading the frames', () => {
  assert.throws(() => parseFragment(promising(5_000_000), 1), BadMedia);
  assert.equal(parseFragment(promising(1), 1).sizes.length, 1);
});
