import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BadMedia, box, fullBox, takeApart, u32 } from './fmp4.ts';

/** A fragment whose header promises so many frames and says nothing of each. */
const promising = (frames: number): Buffer => {
  const traf = box('traf', [fullBox('tfhd', 0, 0x10, [u32(1), u32(0)]), fullBox('trun', 0, 0, [u32(frames)])]);
  return Buffer.concat([box('moov', []), box('moof', [traf]), box('mdat', [])]);
};

test('a fragment that promises other than the frames that were encoded is refused before they are counted', () => {
  assert.throws(() => takeApart(promising(5_000_000), 1), BadMedia);
  assert.equal(takeApart(promising(1), 1).sizes.length, 1);
});
