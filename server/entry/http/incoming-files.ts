// Files that come in, by whatever route: how many at once, and how many bytes together, for a session, an application and
// the process. Places and bytes are taken before a byte is read, and given back however the upload ends.
import type { FastifyRequest } from 'fastify';
import { fault } from '../../domain/faults.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Fault } from '../../kit/fault.ts';
import { type Bounds, type Level, type Owner, type Share, Totals } from '../../kit/totals.ts';
import { type UploadBounds, type UploadedFile, withUploadedFile } from './multipart.ts';

const GIB = 1024 ** 3;
export const UPLOADS_AT_ONCE_MAX: Bounds = { session: 8, application: 16, process: 64 };
/** A session has its own limit of uploads. One that is larger than a bound may come alone. */
const UPLOAD_BYTES_AT_ONCE_MAX: Bounds = {
  session: Number.POSITIVE_INFINITY,
  application: 8 * GIB,
  process: 16 * GIB,
};
/** An upload that does not say how long it is takes so many bytes at a time. */
const STEP_BYTES = 1024 ** 2;
/** So much must arrive in each minute, until all is there: about 1 KiB a second. */
const LEAST_BYTES = 64 * 1024;
const LEAST_WITHIN_MS = 60_000;
/** As long as a session may live. */
const UPLOAD_MS_MAX = 21_600_000;

export interface AllowedUpload extends Pick<UploadBounds, 'maxBytes' | 'advice'> {
  /** Lowers the bounds of bytes at once. */
  readonly room?: Partial<Bounds>;
}

export interface IncomingFilesParts {
  /** Where they stand while they come in. */
  readonly folder: string;
  readonly clock: Clock;
}

export class IncomingFiles {
  readonly #parts: IncomingFilesParts;
  readonly #places = new Totals(UPLOADS_AT_ONCE_MAX);
  readonly #bytes = new Totals(UPLOAD_BYTES_AT_ONCE_MAX);

  constructor(parts: IncomingFilesParts) {
    this.#parts = parts;
  }

  /** `allow` says how much may come; `work` gets the whole file, which is gone with the request unless it was moved away. */
  async receive<T>(
    request: FastifyRequest,
    owner: Owner,
    allow: () => Promise<AllowedUpload> | AllowedUpload,
    work: (file: UploadedFile) => Promise<T>,
  ): Promise<T> {
    const place = this.#places.open(owner);
    const bytes = this.#bytes.open(owner);
    try {
      const full = place.take(1);
      if (full) throw tooMany(full);
      const { room = {}, ...allowed } = await allow();
      const { folder, clock } = this.#parts;
      const bounds = { folder, ...allowed, reserve: (needed: number) => reserve(bytes, needed, room) };
      return await withUploadedFile(request, bounds, clock.now(), work);
    } finally {
      place.close();
      bytes.close();
    }
  }
}

/** Ends the connection of an upload that makes next to no progress. */
export async function demandProgress({ raw }: FastifyRequest, clock: Clock): Promise<void> {
  const { socket } = raw;
  const over = new AbortController();
  const end = (): void => over.abort(new Error('nothing more comes'));
  raw.once('end', end);
  raw.once('close', end);
  // A request that was answered before its body had come hears no more of its connection.
  socket.once('close', end);
  const endMs = clock.monotonicMs() + UPLOAD_MS_MAX;
  while (!over.signal.aborted) {
    const before = socket.bytesRead;
    await clock.sleep(LEAST_WITHIN_MS, over.signal).catch(() => {});
    const isSlow = socket.bytesRead - before < LEAST_BYTES || clock.monotonicMs() > endMs;
    if (isSlow && !over.signal.aborted && !raw.complete) socket.destroy();
  }
  socket.off('close', end);
}

/** Takes what is missing of so many bytes. */
function reserve(share: Share, needed: number, room: Partial<Bounds>): void {
  const missing = needed - share.amount;
  if (missing <= 0) return;
  const step = Math.min(STEP_BYTES, share.amount);
  if (step > missing && !share.take(step, room)) return;
  const full = share.take(missing, room);
  if (full) throw tooManyBytes(full, room);
}

const NAMES = { session: 'this session', application: 'this application', process: 'this server' } as const;

const tooMany = ({ bound, max }: Level): Fault =>
  fault('rate_limited', `${max} uploads of ${NAMES[bound]} are already being received, which is the limit.`, {
    advice: 'Wait for one to finish, and send the request again.',
    details: { limit: max, used: max, retryAfterSeconds: 1 },
  });

const tooManyBytes = ({ bound, max, sum }: Level, room: Partial<Bounds>): Fault => {
  const limit = Math.min(max, room[bound] ?? max);
  return fault('rate_limited', `Uploads of ${NAMES[bound]} that come in now have ${sum} of ${limit} bytes already.`, {
    advice: 'Wait for one to finish, and send the request again.',
    details: { limit, used: sum, retryAfterSeconds: 1 },
  });
};
