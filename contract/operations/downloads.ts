// Files that browsers downloaded.
import { Download, DownloadPage, DownloadParams, DownloadsQuery, LinkParams, RangeHeader } from '../files.ts';
import type { Operation } from '../operation.ts';
import { SessionParams } from '../sessions.ts';
import { ANY_ORIGIN_HEADERS, FILE_HEADERS, PART_HEADERS } from './shared.ts';

const VARY = { vary: '`accept`.' } as const;

export const DOWNLOAD_OPERATIONS = {
  listDownloads: {
    tag: 'Downloads',
    method: 'GET',
    path: '/v1/browsers/downloads',
    summary: 'List downloads of a session',
    description:
      'Returns completed downloads, while the session is running and for 31 days after its end, regardless of the download folder that a client has set. A file is listed within two seconds after it is complete.',
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
    summary: 'Read a download or its content',
    description:
      'Returns the metadata of the download as JSON or, with `Accept: application/octet-stream`, its content; with `Range`, part of the content. If `Accept` names both, the one with the higher q-value is returned.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: false,
    mount: 'both',
    params: DownloadParams,
    headers: RangeHeader,
    responses: {
      200: { description: 'The download.', schema: Download, mayBeFile: true, headers: { ...FILE_HEADERS, ...VARY } },
      206: { description: 'The requested byte range.', mayBeFile: true, headers: { ...PART_HEADERS, ...VARY } },
      304: { description: 'The version that you have is current.', headers: { ...FILE_HEADERS, ...VARY } },
    },
    errors: ['not_found', 'not_acceptable', 'range_not_satisfiable', 'storage_unreachable'],
  },
  deleteDownload: {
    tag: 'Downloads',
    method: 'DELETE',
    path: '/v1/browsers/downloads/{id}',
    summary: 'Delete a download',
    description: 'Deletes the file. Links to it stop working.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: true,
    mount: 'both',
    params: DownloadParams,
    responses: { 204: { description: 'The file was deleted.' } },
    errors: ['not_found', 'storage_unreachable'],
  },
  readLinkedFile: {
    tag: 'Downloads',
    method: 'GET',
    path: '/v1/browsers/files/{token}',
    summary: 'Read the file of a signed link',
    description:
      'Returns the file that a `downloadUrl` links to. Requires no key and can be read by pages of any origin. The link is valid for 6 hours, or until the file is deleted.',
    credential: 'public',
    isWrite: false,
    mount: 'native',
    params: LinkParams,
    headers: RangeHeader,
    responses: {
      200: { description: 'The content.', mayBeFile: true, headers: { ...FILE_HEADERS, ...ANY_ORIGIN_HEADERS } },
      206: {
        description: 'The requested byte range.',
        mayBeFile: true,
        headers: { ...PART_HEADERS, ...ANY_ORIGIN_HEADERS },
      },
      304: {
        description: 'The version that you have is current.',
        headers: { ...FILE_HEADERS, ...ANY_ORIGIN_HEADERS },
      },
    },
    errors: ['signed_url_invalid', 'signed_url_expired', 'not_found', 'range_not_satisfiable', 'storage_unreachable'],
  },
  archiveDownloads: {
    tag: 'Compatibility',
    method: 'GET',
    path: '/v1/sessions/{id}/downloads',
    summary: 'Read all downloads of a session as an archive',
    description:
      'Returns a zip archive, oldest file first. If several files have the same name, a number is added to the later ones. The archive is empty if there are no downloads.',
    credential: 'agentKey',
    scopes: ['browsers:files'],
    isWrite: false,
    mount: 'compat',
    params: SessionParams,
    responses: {
      200: {
        description: 'The archive.',
        contentType: 'application/zip',
        headers: { 'content-disposition': 'The file name of the archive.' },
      },
    },
    errors: ['not_found'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
