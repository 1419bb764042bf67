// Files that browsers downloaded.
import { Download, DownloadPage, DownloadParams, DownloadsQuery, LinkParams, RangeHeader } from '../files.ts';
import type { Operation } from '../operation.ts';
import { SessionParams } from '../sessions.ts';
import { FILE, FOR_ANY_ORIGIN, PART } from './shared.ts';

const VARY = { vary: '`accept`.' } as const;

export const DOWNLOAD_OPERATIONS = {
  listDownloads: {
    tag: 'Downloads',
    method: 'GET',
    path: '/v1/browsers/downloads',
    summary: 'List downloads of a session',
    description:
      'Complete files, while the session runs and for 31 days after its end, whatever download folder a client has named. A file is listed within two seconds of its completion.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: false,
    mount: 'both',
    query: DownloadsQuery,
    responses: { 200: { description: 'A page of downloads.', schema: DownloadPage } },
    errors: ['not_found'],
  },
  readDownload: {
    tag: 'Downloads',
    method: 'GET',
    path: '/v1/browsers/downloads/{id}',
    summary: 'Read a download, or its bytes',
    description:
      'What is known of it as JSON; with `Accept: application/octet-stream` its bytes, with `Range` a part of them. Of both the one with the higher q-value.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: false,
    mount: 'both',
    params: DownloadParams,
    headers: RangeHeader,
    responses: {
      200: { description: 'The download.', schema: Download, orBytes: true, headers: { ...FILE, ...VARY } },
      206: { description: 'The part that was asked for.', orBytes: true, headers: { ...PART, ...VARY } },
      304: { description: 'It is the one that you have.', headers: { ...FILE, ...VARY } },
    },
    errors: ['not_found', 'not_acceptable', 'range_not_satisfiable', 'storage_unreachable'],
  },
  deleteDownload: {
    tag: 'Downloads',
    method: 'DELETE',
    path: '/v1/browsers/downloads/{id}',
    summary: 'Delete a download',
    description: 'Its bytes go too, and links to it end.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: true,
    mount: 'both',
    params: DownloadParams,
    responses: { 204: { description: 'Deleted.' } },
    errors: ['not_found', 'storage_unreachable'],
  },
  readLinkedFile: {
    tag: 'Downloads',
    method: 'GET',
    path: '/v1/browsers/files/{token}',
    summary: 'Read the file of a signed link',
    description:
      'What a `downloadUrl` leads to. Needs no key, and may be read from pages of any origin. Ends after 6 hours, and when the file is deleted.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    params: LinkParams,
    headers: RangeHeader,
    responses: {
      200: { description: 'The bytes.', orBytes: true, headers: { ...FILE, ...FOR_ANY_ORIGIN } },
      206: { description: 'The part that was asked for.', orBytes: true, headers: { ...PART, ...FOR_ANY_ORIGIN } },
      304: { description: 'It is the one that you have.', headers: { ...FILE, ...FOR_ANY_ORIGIN } },
    },
    errors: ['signed_url_invalid', 'signed_url_expired', 'not_found', 'range_not_satisfiable', 'storage_unreachable'],
  },
  archiveDownloads: {
    tag: 'Compatibility',
    method: 'GET',
    path: '/v1/sessions/{id}/downloads',
    summary: 'All downloads of a session in one archive',
    description: 'A zip, oldest file first; of several with one name the later ones get a number. Empty without any.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: false,
    mount: 'compat',
    params: SessionParams,
    responses: {
      200: {
        description: 'The archive.',
        contentType: 'application/zip',
        headers: { 'content-disposition': 'Its name.' },
      },
    },
    errors: ['not_found'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
