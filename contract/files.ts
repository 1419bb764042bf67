// Files of sessions: uploads by callers, downloads by browsers, and links to downloads.
import { type Static, Type } from 'typebox';
import { Time, Uuid } from './common.ts';

export const DOWNLOADS_LIMIT_DEFAULT = 20;
export const DOWNLOADS_LIMIT_MAX = 100;
const NAME_CHARACTERS_MAX = 255;

const Checksum = Type.String({
  pattern: '^[0-9a-f]{64}$',
  description: 'SHA-256 of the content, in lower-case hexadecimal.',
});

export const UploadResponse = Type.Object(
  {
    message: Type.Literal('File uploaded', { description: 'Human-readable confirmation.' }),
    fileName: Type.String({ description: 'File name as sent.' }),
    filePath: Type.String({
      description: 'Path of the file as the browser sees it. Pass it to `DOM.setFileInputFiles`.',
    }),
    size: Type.Integer({ description: 'Size in bytes.' }),
    checksum: Checksum,
  },
  { description: 'A file that was uploaded into the session.' },
);
export type UploadResponse = Static<typeof UploadResponse>;

export const Download = Type.Object(
  {
    id: Uuid('Id of the download.'),
    sessionId: Uuid('Id of the session whose browser downloaded the file.'),
    filename: Type.String({
      description: 'File name that the site suggested. Several downloads may have the same name.',
    }),
    mimeType: Type.String({
      description:
        'Media type from the response header, if `logSession` is true and the header names a specific type. Otherwise detected from the first bytes of the file or, for text, from the file extension. `application/octet-stream` if unknown.',
    }),
    size: Type.Integer({ description: 'Size in bytes.' }),
    checksum: Checksum,
    createdAt: Time('When the download was complete. Lists are sorted by this time, oldest first.'),
    downloadUrl: Type.String({
      format: 'uri',
      description:
        'Signed link to the content. It works without a key, for 6 hours or until the download is deleted, whichever comes first.',
    }),
    downloadUrlExpiresAt: Time('When the link expires. Every response has a new link.'),
  },
  { description: 'A file that a browser has downloaded completely.' },
);
export type Download = Static<typeof Download>;

export const DownloadPage = Type.Object({
  downloads: Type.Array(Download, { description: 'Oldest first.' }),
  total: Type.Integer({ description: 'Total number of downloads that match.' }),
  limit: Type.Integer({ description: 'Maximum number of downloads in the response.' }),
  offset: Type.Integer({ description: 'Number of downloads that were skipped.' }),
});
export type DownloadPage = Static<typeof DownloadPage>;

const Bytes = (description: string) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });
const Instant = (description: string) => Type.String({ minLength: 1, maxLength: 64, description });

export const DownloadsQuery = Type.Object({
  sessionId: Uuid('Id of the session.'),
  filename: Type.Optional(
    Type.String({ maxLength: NAME_CHARACTERS_MAX, description: 'Return only downloads with exactly this file name.' }),
  ),
  mimeType: Type.Optional(
    Type.String({ maxLength: NAME_CHARACTERS_MAX, description: 'Return only downloads with exactly this media type.' }),
  ),
  minSize: Type.Optional(Bytes('Return only downloads of at least this size, in bytes.')),
  maxSize: Type.Optional(Bytes('Return only downloads of at most this size, in bytes.')),
  createdAfter: Type.Optional(Instant('Return only downloads that were complete at this time or later. ISO 8601.')),
  createdBefore: Type.Optional(Instant('Return only downloads that were complete at this time or earlier. ISO 8601.')),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: DOWNLOADS_LIMIT_MAX,
      default: DOWNLOADS_LIMIT_DEFAULT,
      description: 'Maximum number of downloads to return.',
    }),
  ),
  offset: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1_000_000, default: 0, description: 'Number of downloads to skip.' }),
  ),
});
export type DownloadsQuery = Static<typeof DownloadsQuery>;

export const DownloadParams = Type.Object({ id: Uuid('Id of the download.') });

export const LinkParams = Type.Object({
  token: Type.String({ minLength: 1, maxLength: 2048, description: 'Token: the last part of a `downloadUrl`.' }),
});

export const RangeHeader = Type.Object({
  range: Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'Byte range to return, for example `bytes=0-1023`. The status is then 206.',
    }),
  ),
  'if-none-match': Type.Optional(
    Type.String({
      maxLength: 2000,
      description: '`ETag` of the version that you already have. If it is current, the status is 304.',
    }),
  ),
  'if-range': Type.Optional(
    Type.String({
      maxLength: 200,
      description: '`ETag` of the version that `range` refers to. If it is not current, the whole file is returned.',
    }),
  ),
});
