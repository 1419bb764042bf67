// Uploads: multipart/form-data with exactly one part, a file named `file`. Streamed to a file of ours, counted and digested
// on the way; the handler gets it whole, and it is gone with the request unless the handler has moved it away.
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import multipart from '@fastify/multipart';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { fault } from '../../domain/faults.ts';
import { writeSynced } from '../../kit/durable.ts';
import { writeHashed } from '../../kit/hashed-write.ts';
import { newId } from '../../kit/ids.ts';

const FIELD = 'file';
/** Boundaries and headers of the part, beside its bytes. */
const FRAME_BYTES_MAX = 16 * 1024;
const MANY = 'Send exactly one part, a file named `file`.';

export interface UploadedFile {
  /** As the caller named it: may hold anything, slashes too. */
  readonly fileName: string;
  readonly path: string;
  readonly size: number;
  /** SHA-256, hex. */
  readonly checksum: string;
}

export interface UploadBounds {
  /** Where files stand while they come in; made where it is missing. */
  readonly folder: string;
  readonly maxBytes: number;
  /** Which limit that is and what to do, for the refusal of a larger file. */
  readonly advice?: string;
  /** Takes room for so many bytes in all, before they are read; throws where there is none. */
  readonly reserve?: (bytes: number) => void;
}

export function acceptMultipart(app: FastifyInstance): void {
  // Names are kept with their slashes, so that whoever uses them can refuse those.
  void app.register(multipart, {
    preservePath: true,
    throwFileSizeLimit: false,
    limits: { fields: 1, files: 1, parts: 2, headerPairs: 20 },
  });
}

/** Reads the upload, calls `work` with it, and removes what is left of it. */
export async function withUploadedFile<T>(
  request: FastifyRequest,
  bounds: UploadBounds,
  now: Date,
  work: (file: UploadedFile) => Promise<T>,
): Promise<T> {
  demandMultipart(request, bounds);
  bounds.reserve?.(Number(request.headers['content-length'] ?? 0));
  await mkdir(bounds.folder, { recursive: true, mode: 0o700 });
  const path = join(bounds.folder, newId(now));
  try {
    return await work(await receive(request, path, bounds));
  } finally {
    await rm(path, { force: true });
  }
}

function demandMultipart(request: FastifyRequest, bounds: UploadBounds): void {
  if (!request.isMultipart())
    throw fault('unsupported_media_type', 'The operation requires multipart/form-data.', {
      advice: 'Send the file as the only part, with the name `file`.',
    });
  if (Number(request.headers['content-length'] ?? 0) > bounds.maxBytes + FRAME_BYTES_MAX) throw tooLarge(bounds);
}

async function receive(request: FastifyRequest, path: string, bounds: UploadBounds): Promise<UploadedFile> {
  let received: UploadedFile | undefined;
  try {
    for await (const part of request.parts({ limits: { fileSize: bounds.maxBytes + 1 } })) {
      if (part.type !== 'file' || part.fieldname !== FIELD || !part.filename)
        throw fault('missing_file', `The part ${JSON.stringify(part.fieldname)} is not a file named ${FIELD}.`, {
          advice: MANY,
        });
      const body = reserved(part.file, bounds);
      received = { fileName: part.filename, path, ...(await writeSynced(path, file => writeHashed(file, body))) };
      if (received.size > bounds.maxBytes) throw tooLarge(bounds);
    }
  } catch (error) {
    // What is still on its way is read and thrown away, or the connection would hang.
    request.raw.unpipe().resume();
    throw refusalOf(error);
  }
  if (!received) throw fault('missing_file', `The upload has no part named ${FIELD}.`, { advice: MANY });
  return received;
}

/** The same bytes, each of which room was taken for. */
async function* reserved(body: AsyncIterable<Buffer>, { reserve }: UploadBounds): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    reserve?.(bytes);
    yield chunk;
  }
}

const tooLarge = ({ maxBytes, advice = 'Send a smaller file.' }: UploadBounds) =>
  fault('payload_too_large', `The file is too large: at most ${maxBytes} bytes are accepted.`, {
    advice,
    details: { limit: maxBytes },
  });

/** What the reader of multipart throws, told apart by its codes and by its one other kind of message. */
function refusalOf(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (/^FST_(PARTS|FILES|FIELDS)_LIMIT$/.test(code))
    return fault('invalid_file', 'The upload has several parts.', { advice: MANY });
  if (code.startsWith('FST_') || code === 'ECONNRESET' || (error instanceof Error && /multipart/i.test(error.message)))
    return fault('invalid_file', 'The body is not well-formed multipart/form-data, or it ended early.', {
      advice: MANY,
    });
  return error;
}
