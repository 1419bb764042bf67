// Responds with a file: the whole file, a range of it, or 304 if the caller already has it (RFC 9110, 13 and 14).
import { Readable } from 'node:stream';
import { fault } from '../../domain/faults.ts';
import { contentDisposition } from '../../domain/files/content-disposition.ts';
import type { ServedFile } from '../../domain/files/served-file.ts';
import type { HttpResponse } from './http-response.ts';

export interface FileRequest {
  readonly headers: { readonly [name in 'range' | 'if-range' | 'if-none-match']?: string };
  /** True if only the headers are sent. */
  readonly isHead: boolean;
  readonly extraHeaders?: Readonly<Record<string, string>>;
}

interface ByteRange {
  readonly first: number;
  readonly last: number;
}

export async function fileResponse(
  file: ServedFile,
  { headers, isHead, extraHeaders = {} }: FileRequest,
): Promise<HttpResponse> {
  const tag = `"${file.tag}"`;
  const sentHeaders = {
    etag: tag,
    'accept-ranges': 'bytes',
    'last-modified': file.createdAt.toUTCString(),
    'content-disposition': contentDisposition(file.disposition, file.name),
    ...extraHeaders,
  };
  if (matches(headers['if-none-match'], tag)) return { status: 304, headers: sentHeaders };
  const range =
    headers['if-range'] === undefined || headers['if-range'] === tag ? parseRange(headers.range, file.size) : undefined;
  const length = range ? range.last - range.first + 1 : file.size;
  return {
    status: range ? 206 : 200,
    contentType: file.mimeType,
    headers: {
      ...sentHeaders,
      'content-length': String(length),
      ...(range ? { 'content-range': `bytes ${range.first}-${range.last}/${file.size}` } : {}),
    },
    body: isHead ? Readable.from([]) : await bytesOf(file, range),
  };
}

async function bytesOf(file: ServedFile, range: ByteRange | undefined): Promise<Readable> {
  // An empty file is not opened, because it has no valid range.
  if (file.size === 0) return Readable.from([]);
  const openedFile = await file.open(range).catch(error => {
    throw fault(
      'storage_unreachable',
      'The file cannot be read at the moment: the file storage is unreachable or returned an error.',
      {
        advice: 'Send the request again in a few seconds.',
        cause: error,
      },
    );
  });
  if (openedFile) return openedFile.body;
  throw fault('not_found', 'The file no longer exists.', {
    advice: 'The file was deleted during the request. Do not send the request again.',
  });
}

const matches = (header: string | undefined, tag: string): boolean =>
  header?.split(',').some(one => ['*', tag, `W/${tag}`].includes(one.trim())) ?? false;

/**
 * Parses a single range. Returns undefined for several ranges or an invalid header. The whole file is then sent, as the
 * standard allows.
 */
export function parseRange(header: string | undefined, size: number): ByteRange | undefined {
  const [, from = '', to = ''] = /^bytes=(\d{0,16})-(\d{0,16})$/.exec(header?.trim() ?? '') ?? [];
  if (from === '' && to === '') return undefined;
  const first = from === '' ? Math.max(0, size - Number(to)) : Number(from);
  const last = from === '' || to === '' ? size - 1 : Math.min(Number(to), size - 1);
  if (from !== '' && to !== '' && Number(to) < Number(from)) return undefined;
  if (first < size && first <= last) return { first, last };
  throw fault(
    'range_not_satisfiable',
    `The range ${header} begins after the end of the file, which has ${size} bytes.`,
    {
      advice: size === 0 ? 'Send the request without a range.' : `Request a range that begins before byte ${size}.`,
      details: { size },
    },
  );
}
