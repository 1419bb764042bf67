// Recordings of sessions: replays and MP4 files of their pages.
import { type Static, Type } from 'typebox';
import { Time, Uuid } from './common.ts';

export const REPLAY_TYPE = 'application/vnd.apple.mpegurl';
export const PICTURE_TYPE = 'image/jpeg';
export const PLAYLISTS_PER_MINUTE_MAX = 120;
export const FILE_REQUESTS_PER_MINUTE_MAX = 5;

const PageId = Type.String({
  pattern: '^[0-9]{1,3}$',
  description: 'Number of the page. Pages are numbered from 0 in the order in which they appeared, as in logs.',
});

export const ReplayParams = Type.Object({ id: Uuid('Id of the session.'), pageId: PageId });

const Milliseconds = (description: string) => Type.Integer({ minimum: 0, description });

const Gap = Type.Object(
  {
    startTimeMs: Milliseconds('Start of the gap.'),
    endTimeMs: Milliseconds('End of the gap.'),
    why: Type.Union([Type.Literal('hidden'), Type.Literal('missing')], {
      description:
        '`hidden`: another tab was in front. `missing`: nothing could be recorded, for example because the page was not painted yet, too many pages were open, the service was down, or there was no disk space. During a gap the replay shows the last frame before it; at the beginning, the first frame.',
    }),
  },
  { description: 'A period that was not recorded.' },
);

export const Replay = Type.Object(
  {
    pageId: PageId,
    url: Type.String({ description: 'Path of the HLS playlist, relative to the host.' }),
    startTimeMs: Milliseconds('When the page appeared, in milliseconds after the first page.'),
    endTimeMs: Milliseconds(
      'When the replay ends, in milliseconds after the first page appeared. While the session is running, the end of the part that is already stored.',
    ),
    gaps: Type.Optional(
      Type.Array(Gap, {
        description: 'Periods that were not recorded, with times on the scale of `startTimeMs` and `endTimeMs`.',
      }),
    ),
  },
  { description: 'The replay of one page.' },
);
export type Replay = Static<typeof Replay>;

const UnrecordedPages = Type.Object(
  {
    why: Type.Union([Type.Literal('too_many_at_once'), Type.Literal('too_many_in_all')], {
      description:
        '`too_many_at_once`: more than 64 pages were open. `too_many_in_all`: the session had already opened 1000 pages.',
    }),
    pages: Type.Integer({ minimum: 1, description: 'Number of pages. 1000 means 1000 or more.' }),
  },
  { description: 'Pages that were not recorded.' },
);
export type UnrecordedPages = Static<typeof UnrecordedPages>;

export const Replays = Type.Object({
  pages: Type.Array(Replay, { description: 'Replays in the order of page numbers.' }),
  pageCount: Type.Integer({ description: 'Number of replays.' }),
  notRecorded: Type.Optional(
    Type.Array(UnrecordedPages, { description: 'Pages that were not recorded, grouped by reason.' }),
  ),
  status: Type.Optional(
    Type.Literal('pending', {
      description: 'The session has ended, and parts of its recording are still being stored.',
    }),
  ),
});

export const RecordingDownload = Type.Object(
  {
    pageId: PageId,
    status: Type.Union(
      [Type.Literal('NOT_REQUESTED'), Type.Literal('PENDING'), Type.Literal('COMPLETED'), Type.Literal('FAILED')],
      { description: 'State of the file.' },
    ),
    completedAt: Type.Optional(Time('When the file was completed.')),
    downloadUrl: Type.Optional(Type.String({ description: 'Signed link to the file. Works without a credential.' })),
    downloadUrlExpiresAt: Type.Optional(Time('When the link expires. Every response has a new link.')),
    size: Type.Optional(Type.Integer({ description: 'Size in bytes.' })),
    error: Type.Optional(Type.String({ description: 'Present with `FAILED`: what to do next.' })),
  },
  { description: 'The MP4 file of one page.' },
);
export type RecordingDownload = Static<typeof RecordingDownload>;

export const RecordingDownloads = Type.Object({
  downloads: Type.Array(RecordingDownload, { description: 'Files in the order of page numbers.' }),
});
