import assert from 'node:assert/strict';
import { test } from 'node:test';
import HLS from 'hls-parser';
import type { SegmentRow } from '../../engines/store/rows/recordings.ts';
import type { SessionId } from '../../kit/ids.ts';
import { type PlaylistParams, playlist } from './playlist.ts';

const segment = (sequence: number, startMs: number, durationMs: number, run = 0): SegmentRow => ({
  sessionId: '0190a000-0000-7000-8000-000000000001' as SessionId,
  page: 0,
  ...{ sequence, run, startMs, durationMs, width: 1280, height: 720, bytes: 1, payloadAt: 0 },
  samples: { durationsMs: [durationMs], sizes: [1] },
});

const params = (segments: readonly SegmentRow[], isWhole = false): PlaylistParams => ({
  segments,
  segmentMs: 6000,
  startedAt: new Date('2026-11-20T10:00:00.000Z'),
  isComplete: isWhole,
  initUrl: run => `https://h/init-${run}`,
  segmentUrl: sequence => `https://h/${sequence}`,
});

const allSegments = [segment(1, 0, 6000), segment(2, 6000, 6000), segment(3, 12_000, 850)];

test('until its page is complete, a playlist has the type EVENT and only grows; then the type becomes VOD and an end tag is added', () => {
  const earlyPlaylist = playlist(params(allSegments.slice(0, 1)));
  const laterPlaylist = playlist(params(allSegments.slice(0, 2)));
  assert.ok(laterPlaylist.startsWith(earlyPlaylist));
  assert.doesNotMatch(laterPlaylist, /ENDLIST/);
  const endedPlaylist = playlist(params(allSegments, true));
  assert.ok(endedPlaylist.startsWith(laterPlaylist.replace(':EVENT', ':VOD')));
  assert.match(endedPlaylist, /#EXTINF:0\.850,\nhttps:\/\/h\/3\n#EXT-X-ENDLIST\n$/);
});

test('a playlist contains a discontinuity and a date-time tag at each new init segment and at each gap', () => {
  const text = playlist(params([segment(1, 0, 6000), segment(2, 6000, 1500, 1), segment(4, 12_000, 6000, 1)], true));
  assert.equal(text.match(/#EXT-X-DISCONTINUITY/g)?.length, 2);
  assert.equal(text.match(/#EXT-X-MAP/g)?.length, 2);
  assert.deepEqual(text.match(/(?<=DATE-TIME:).*/g), [
    '2026-11-20T10:00:00.000Z',
    '2026-11-20T10:00:06.000Z',
    '2026-11-20T10:00:12.000Z',
  ]);
});

test('the target duration is the length of a full segment, and at least six seconds', () => {
  const targetDurationOf = (segmentMs: number, segments = allSegments): string | undefined =>
    playlist({ ...params(segments), segmentMs }).match(/(?<=TARGETDURATION:).*/)?.[0];
  assert.deepEqual(
    [2000, 6000, 9500, 10_000].map(segmentMs => targetDurationOf(segmentMs)),
    ['6', '6', '10', '10'],
  );
  assert.equal(targetDurationOf(10_000, []), '10', 'a playlist without segments has the same target duration as later');
});

test('an HLS parser accepts the playlist', () => {
  const parsedPlaylist = HLS.parse(playlist(params(allSegments, true)));
  assert.ok(!parsedPlaylist.isMasterPlaylist);
  assert.deepEqual(
    parsedPlaylist.segments.map(({ duration, uri }) => [duration, uri]),
    [
      [6, 'https://h/1'],
      [6, 'https://h/2'],
      [0.85, 'https://h/3'],
    ],
  );
  assert.equal(parsedPlaylist.targetDuration, 6);
});
