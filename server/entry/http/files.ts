// HTTP handlers for uploads, downloads and signed links.
import { fault } from '../../domain/faults.ts';
import type { Downloads } from '../../domain/files/downloads.ts';
import type { Uploads } from '../../domain/files/uploads.ts';
import { preferredForm } from './accept.ts';
import { createArchive } from './archive.ts';
import type { HandlerInput } from './bind.ts';
import { fileResponse } from './file-response.ts';
import { emptyResponse, type HttpResponse, jsonResponse } from './http-response.ts';

export interface FileMethods {
  readonly uploads: Pick<Uploads, 'allow' | 'upload'>;
  readonly downloads: Pick<Downloads, 'list' | 'read' | 'file' | 'remove' | 'archive' | 'fileOfLink'>;
}

/** A signed link may be used from pages of any origin. */
const PUBLIC_HEADERS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'accept-ranges, content-disposition, content-length, content-range, etag',
  'cross-origin-resource-policy': 'cross-origin',
} as const;

export const fileHandlers = ({ uploads, downloads }: FileMethods) => ({
  uploadFile: async ({ caller, params, file }: HandlerInput<'uploadFile'>): Promise<HttpResponse> =>
    jsonResponse(await uploads.upload(caller, params.id, file)),

  listDownloads: async ({ caller, query }: HandlerInput<'listDownloads'>): Promise<HttpResponse> =>
    jsonResponse(await downloads.list(caller, query)),

  readDownload: async ({
    caller,
    params,
    headers,
    accepts,
    isHead,
  }: HandlerInput<'readDownload'>): Promise<HttpResponse> => {
    const form = preferredForm(accepts);
    const vary = { vary: 'accept' };
    if (form === 'json') return jsonResponse(await downloads.read(caller, params.id), vary);
    if (form === 'bytes')
      return fileResponse(await downloads.file(caller, params.id), { headers, isHead, extraHeaders: vary });
    throw fault(
      'not_acceptable',
      `A download is available as JSON or as application/octet-stream, not as ${accepts}.`,
      {
        advice: 'Send the header Accept: application/json or Accept: application/octet-stream.',
      },
    );
  },

  deleteDownload: async ({ caller, params }: HandlerInput<'deleteDownload'>): Promise<HttpResponse> => {
    await downloads.remove(caller, params.id);
    return emptyResponse();
  },

  readLinkedFile: async ({ params, headers, isHead }: HandlerInput<'readLinkedFile'>): Promise<HttpResponse> =>
    fileResponse(await downloads.fileOfLink(params.token), { headers, isHead, extraHeaders: PUBLIC_HEADERS }),

  archiveDownloads: async ({ caller, params, isHead }: HandlerInput<'archiveDownloads'>): Promise<HttpResponse> => {
    const files = await downloads.archive(caller, params.id);
    return {
      contentType: 'application/zip',
      headers: { 'content-disposition': `attachment; filename="${params.id}.zip"` },
      ...(isHead ? {} : { body: createArchive(files) }),
    };
  },
});
