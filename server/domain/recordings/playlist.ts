// The HLS playlist of one page (RFC 8216): append-only while it grows, complete once everything is stored. Pure.
import type { SegmentRow } from '../../engines/store/rows/recordings.ts';

/** Existing recordings may have segments of this length, even if new segments are shorter. */
const TARGET_MIN_SECONDS = 6;

export interface PlaylistParams {
  readonly segments: readonly SegmentRow[];
  /** Length of a full segment. No segment is longer. */
  readonly segmentMs: number;
  /** When the first frame of the page was painted. */
  readonly startedAt: Date;
  /** True if no more segments will follow. */
  readonly isComplete: boolean;
  readonly initUrl: (run: number) => string;
  readonly segmentUrl: (sequence: number) => string;
}

export function playlist({
  segments,
  segmentMs,
  startedAt,
  isComplete: isWhole,
  initUrl,
  segmentUrl,
}: PlaylistParams): string {
  // The target duration must not change while the playlist grows, so it does not depend on the segments.
  const targetSeconds = Math.max(TARGET_MIN_SECONDS, Math.ceil(segmentMs / 1000));
  const lines = [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    `#EXT-X-TARGETDURATION:${targetSeconds}`,
    '#EXT-X-MEDIA-SEQUENCE:0',
    `#EXT-X-PLAYLIST-TYPE:${isWhole ? 'VOD' : 'EVENT'}`,
    '#EXT-X-INDEPENDENT-SEGMENTS',
    '#EXT-X-START:TIME-OFFSET=0', // Players start at the beginning instead of the live edge.
  ];
  for (const [index, segment] of segments.entries()) {
    const previousSegment = segments[index - 1];
    const isContinuous =
      previousSegment?.run === segment.run && previousSegment.startMs + previousSegment.durationMs === segment.startMs;
    if (previousSegment && !isContinuous) lines.push('#EXT-X-DISCONTINUITY');
    if (previousSegment?.run !== segment.run) lines.push(`#EXT-X-MAP:URI="${initUrl(segment.run)}"`);
    if (!isContinuous) lines.push(`#EXT-X-PROGRAM-DATE-TIME:${dateTimeAt(startedAt, segment.startMs)}`);
    lines.push(`#EXTINF:${(segment.durationMs / 1000).toFixed(3)},`, segmentUrl(segment.sequence));
  }
  if (isWhole) lines.push('#EXT-X-ENDLIST');
  return `${lines.join('\n')}\n`;
}

const dateTimeAt = (startedAt: Date, ms: number): string => new Date(startedAt.getTime() + ms).toISOString();
