// What was to be seen in a session: replays of its pages, and files of them.
import { type Static, Type } from 'typebox';
import { Time, Uuid } from './common.ts';

export const REPLAY_TYPE = 'application/vnd.apple.mpegurl';
export const PICTURE_TYPE = 'image/jpeg';
export const PLAYLISTS_PER_MINUTE = 120;
export const ASSEMBLIES_PER_MINUTE = 5;

const PageId = Type.String({
  pattern: '^[0-9]{1,3}$',
  description: 'Number of the page, from 0 in the order in which pages appeared; the same as in logs.',
});

export const ReplayParams = Type.Object({ id: Uuid('The session.'), pageId: PageId });

const Milliseconds = (description: string) => Type.Integer({ minimum: 0, description });

const Gap = Type.Object(
  {
    startTimeMs: Milliseconds('Where it begins.'),
    endTimeMs: Milliseconds('Where it ends.'),
    why: Type.Union([Type.Literal('hidden'), Type.Literal('missing')], {
      description:
        '`hidden`: another tab was in front. `missing`: nothing was painted yet, the service was down, or there was no room. The last picture is held, at the beginning the first one.',
    }),
  },
  { description: 'A time of which the replay shows nothing of its own.' },
);

export const Replay = Type.Object(
  {
    pageId: PageId,
    url: Type.String({ description: 'Path of its HLS playlist, relative to the host.' }),
    startTimeMs: Milliseconds('When the page appeared, counted from the first one.'),
    endTimeMs: Milliseconds('When it ends; while the session runs, what is stored so far.'),
    gaps: Type.Optional(
      Type.Array(Gap, { description: 'Times, counted alike, of which it shows nothing of its own.' }),
    ),
  },
  { description: 'The replay of one page.' },
);
export type Replay = Static<typeof Replay>;

const NotRecorded = Type.Object(
  {
    why: Type.Union([Type.Literal('too_many_at_once'), Type.Literal('too_many_in_all')], {
      description: '`too_many_at_once`: more than 64 were open. `too_many_in_all`: they came after the thousandth.',
    }),
    pages: Type.Integer({ minimum: 1, description: 'How many; 1000 stands for that and more.' }),
  },
  { description: 'Pages of which nothing is recorded.' },
);
export type NotRecorded = Static<typeof NotRecorded>;

export const Replays = Type.Object({
  pages: Type.Array(Replay, { description: 'By number.' }),
  pageCount: Type.Integer({ description: 'How many there are.' }),
  notRecorded: Type.Optional(Type.Array(NotRecorded, { description: 'Pages that are missing here, by why.' })),
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
      { description: 'What became of its file.' },
    ),
    completedAt: Type.Optional(Time('When the file was whole.')),
    downloadUrl: Type.Optional(Type.String({ description: 'Where it can be fetched, without a credential.' })),
    downloadUrlExpiresAt: Type.Optional(Time('Until when; each answer gives a new address.')),
    size: Type.Optional(Type.Integer({ description: 'Bytes.' })),
  },
  { description: 'The MP4 file of one page.' },
);
export type RecordingDownload = Static<typeof RecordingDownload>;

export const RecordingDownloads = Type.Object({
  downloads: Type.Array(RecordingDownload, { description: 'By number of the page.' }),
});
