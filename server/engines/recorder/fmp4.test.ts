import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BadMedia, box, fullBox, parseFragment, u32 } from './fmp4.ts';

const SIZE_PRESENT = 0x200;

/** A fragment whose header declares a number of frames, but describes only one, which is empty. */
const fragmentDeclaring = (frames: number): Buffer => {
  const trun = fullBox('trun', 0, SIZE_PRESENT, [u32(frames), u32(0)]);
  const traf = box('traf', [fullBox('tfhd', 0, 0, [u32(1)]), trun]);
  return Buffer.concat([box('moov', []), box('moof', [traf]), box('mdat', [])]);
};

test('rejects a fragment that declares an unexpected number of frames, without reading the frames', () => {
  // Reading a frame that is not there would throw a RangeError.
  for (const frames of [0, 2, 5_000_000]) assert.throws(() => parseFragment(fragmentDeclaring(frames), 1), BadMedia);
  assert.equal(parseFragment(fragmentDeclaring(1), 1).sizes.length, 1);
});
