// Files of sessions: what callers upload into them, what their browsers download, and links to it.
import { type Static, Type } from 'typebox';
import { Time, Uuid } from './common.ts';

export const DOWNLOADS_LIMIT_DEFAULT = 20;
export const DOWNLOADS_LIMIT_MAX = 100;
const NAME_MAX = 255;

const Checksum = Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of the bytes, in lower-case hex.' });

export const UploadAnswer = Type.Object(
  {
    message: Type.Literal('File uploaded', { description: 'That it worked, in words.' }),
    fileName: Type.String({ description: 'The name as it was sent.' }),
    filePath: Type.String({
      description: 'The path at which the browser reads it: give it to `DOM.setFileInputFiles`.',
    }),
    size: Type.Integer({ description: 'Bytes.' }),
    checksum: Checksum,
  },
  { description: 'A file that the session now has.' },
);
export type UploadAnswer = Static<typeof UploadAnswer>;

export const Download = Type.Object(
  {
    id: Uuid('The download.'),
    sessionId: Uuid('The session whose browser downloaded it.'),
    filename: Type.String({ description: 'The name that the site suggested. Several downloads may have the same.' }),
    mimeType: Type.String({
      description:
        'As its server said in the header of the response, where the session was listened to (`logSession`) and that is a type of its own; else by its first bytes, or for text by its extension; `application/octet-stream` where they tell nothing.',
    }),
    size: Type.Integer({ description: 'Bytes.' }),
    checksum: Checksum,
    createdAt: Time('When the download began.'),
    downloadUrl: Type.String({
      format: 'uri',
      description: 'Gives out the bytes without a key, for 6 hours and while the download exists.',
    }),
    downloadUrlExpiresAt: Time('When that link ends. Every answer has a new one.'),
  },
  { description: 'A file that a browser downloaded, complete.' },
);
export type Download = Static<typeof Download>;

export const DownloadPage = Type.Object({
  downloads: Type.Array(Download, { description: 'Oldest first.' }),
  total: Type.Integer({ description: 'How many match in all.' }),
  limit: Type.Integer({ description: 'How many are answered at most.' }),
  offset: Type.Integer({ description: 'How many were left out before these.' }),
});
export type DownloadPage = Static<typeof DownloadPage>;

const Bytes = (description: string) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });
const Instant = (description: string) => Type.String({ minLength: 1, maxLength: 64, description });

export const DownloadsQuery = Type.Object({
  sessionId: Uuid('Of which session.'),
  filename: Type.Optional(Type.String({ maxLength: NAME_MAX, description: 'Only those with exactly this name.' })),
  mimeType: Type.Optional(Type.String({ maxLength: NAME_MAX, description: 'Only those with exactly this type.' })),
  minSize: Type.Optional(Bytes('Only those of at least so many bytes.')),
  maxSize: Type.Optional(Bytes('Only those of at most so many bytes.')),
  createdAfter: Type.Optional(Instant('Only those that began then or later; ISO 8601.')),
  createdBefore: Type.Optional(Instant('Only those that began then or earlier; ISO 8601.')),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: DOWNLOADS_LIMIT_MAX,
      default: DOWNLOADS_LIMIT_DEFAULT,
      description: 'How many at most.',
    }),
  ),
  offset: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1_000_000, default: 0, description: 'How many to leave out.' }),
  ),
});
export type DownloadsQuery = Static<typeof DownloadsQuery>;

export const DownloadParams = Type.Object({ id: Uuid('The download.') });

export const LinkParams = Type.Object({
  token: Type.String({ minLength: 1, maxLength: 2048, description: 'The rest of a `downloadUrl`.' }),
});

export const RangeHeader = Type.Object({
  range: Type.Optional(
    Type.String({ maxLength: 200, description: 'A part of the bytes, as `bytes=0-1023`; answered with 206.' }),
  ),
  'if-none-match': Type.Optional(
    Type.String({ maxLength: 2000, description: 'The `ETag` one has; answered with 304.' }),
  ),
  'if-range': Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'The `ETag` that `range` belongs to; with another the answer is whole.',
    }),
  ),
});
