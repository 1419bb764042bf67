// Receives uploads: multipart/form-data with exactly one part, a file named `file`. It is streamed to a temporary file,
// counted and hashed. The file is deleted after the request, unless the handler has moved it.
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import multipart from '@fastify/multipart';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { fault } from '../../domain/faults.ts';
import { writeSynced } from '../../kit/durable.ts';
import { writeHashed } from '../../kit/hashed-write.ts';
import { newId } from '../../kit/ids.ts';

const FILE_FIELD = 'file';
/** Allowance for boundaries and part headers. */
const OVERHEAD_BYTES_MAX = 16 * 1024;
const ONE_PART_ADVICE = 'Send exactly one part, a file named `file`.';

export interface UploadedFile {
  /** The name as the caller sent it. It is not checked, and may contain slashes. */
  readonly fileName: string;
  readonly path: string;
  readonly size: number;
  /** SHA-256, hex. */
  readonly checksum: string;
}

export interface UploadBounds {
  /** Where files are stored while they are received. Created if necessary. */
  readonly folder: string;
  readonly maxBytes: number;
  /** The advice in the error if a file is larger than `maxBytes`. */
  readonly advice?: string;
  /** Called with the total number of bytes before they are read. Throws if they exceed a limit. */
  readonly reserve?: (bytes: number) => void;
}

export function acceptMultipart(app: FastifyInstance): void {
  // Slashes in names are kept, so that the operation can refuse them.
  void app.register(multipart, {
    preservePath: true,
    throwFileSizeLimit: false,
    limits: { fields: 1, files: 1, parts: 2, headerPairs: 20 },
  });
}

/** Receives the file, calls `work` with it, and deletes it if it was not moved. */
export async function withUploadedFile<T>(
  request: FastifyRequest,
  bounds: UploadBounds,
  now: Date,
  work: (file: UploadedFile) => Promise<T>,
): Promise<T> {
  assertMultipart(request, bounds);
  bounds.reserve?.(Number(request.headers['content-length'] ?? 0));
  await mkdir(bounds.folder, { recursive: true, mode: 0o700 });
  const path = join(bounds.folder, newId(now));
  try {
    return await work(await receive(request, path, bounds));
  } finally {
    await rm(path, { force: true });
  }
}

function assertMultipart(request: FastifyRequest, bounds: UploadBounds): void {
  if (!request.isMultipart())
    throw fault('unsupported_media_type', 'The operation requires multipart/form-data.', {
      advice: 'Send the file as the only part, with the name `file`.',
    });
  if (Number(request.headers['content-length'] ?? 0) > bounds.maxBytes + OVERHEAD_BYTES_MAX)
    throw tooLargeFault(bounds);
}

async function receive(request: FastifyRequest, path: string, bounds: UploadBounds): Promise<UploadedFile> {
  let uploadedFile: UploadedFile | undefined;
  try {
    for await (const part of request.parts({ limits: { fileSize: bounds.maxBytes + 1 } })) {
      if (part.type !== 'file' || part.fieldname !== FILE_FIELD || !part.filename)
        throw fault(
          'missing_file',
          `The part ${JSON.stringify(part.fieldname)} must be named ${JSON.stringify(FILE_FIELD)} and must have a filename.`,
          {
            advice: ONE_PART_ADVICE,
          },
        );
      const body = reserveBytes(part.file, bounds);
      uploadedFile = { fileName: part.filename, path, ...(await writeSynced(path, file => writeHashed(file, body))) };
      if (uploadedFile.size > bounds.maxBytes) throw tooLargeFault(bounds);
    }
  } catch (error) {
    // Discards the rest of the body. Otherwise the connection would hang.
    request.raw.unpipe().resume();
    throw faultOf(error);
  }
  if (!uploadedFile)
    throw fault('missing_file', `The upload has no part named ${FILE_FIELD}.`, { advice: ONE_PART_ADVICE });
  return uploadedFile;
}

/** Yields the bytes after `reserve` has accepted them. */
async function* reserveBytes(body: AsyncIterable<Buffer>, { reserve }: UploadBounds): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    reserve?.(bytes);
    yield chunk;
  }
}

const tooLargeFault = ({ maxBytes, advice = 'Send a smaller file.' }: UploadBounds) =>
  fault('payload_too_large', `The file is too large: at most ${maxBytes} bytes are accepted.`, {
    advice,
    details: { limit: maxBytes },
  });

/** Maps errors of the multipart parser, by code or by message, to faults. */
function faultOf(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (/^FST_(PARTS|FILES|FIELDS)_LIMIT$/.test(code))
    return fault('invalid_file', 'The upload has more than one part.', { advice: ONE_PART_ADVICE });
  if (code.startsWith('FST_') || code === 'ECONNRESET' || (error instanceof Error && /multipart/i.test(error.message)))
    return fault('invalid_file', 'The body is not well-formed multipart/form-data, or it ended early.', {
      advice: ONE_PART_ADVICE,
    });
  return error;
}
