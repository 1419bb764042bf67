// Limits on uploads in progress: their number and their bytes, per session, per application and for the process. An
// upload and its bytes are counted from before the body is read until the upload ends, whatever its outcome.
import type { FastifyRequest } from 'fastify';
import { fault } from '../../domain/faults.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Fault } from '../../kit/fault.ts';
import { type Bounds, type Level, type Owner, type Share, Totals } from '../../kit/totals.ts';
import { type UploadBounds, type UploadedFile, withUploadedFile } from './multipart.ts';

const GIB = 1024 ** 3;
export const UPLOADS_AT_ONCE_MAX: Bounds = { session: 8, application: 16, process: 64 };
/**
 * There is no limit per session here, because a session has its own limit on stored uploads. An upload that is larger
 * than a limit is accepted if it is the only one.
 */
const UPLOAD_BYTES_AT_ONCE_MAX: Bounds = {
  session: Number.POSITIVE_INFINITY,
  application: 8 * GIB,
  process: 16 * GIB,
};
/** An upload without Content-Length reserves bytes in steps. The steps grow up to this size. */
const STEP_BYTES_MAX = 1024 ** 2;
/** The minimum rate, about 1 KiB per second: this many bytes in each interval. */
const INTERVAL_BYTES_MIN = 64 * 1024;
const RATE_INTERVAL_MS = 60_000;
/** The maximum duration of an upload: the maximum lifetime of a session. */
const UPLOAD_MS_MAX = 21_600_000;

export interface AllowedUpload extends Pick<UploadBounds, 'maxBytes' | 'advice'> {
  /** Additional, stricter limits on the bytes of uploads in progress. */
  readonly room?: Partial<Bounds>;
}

export interface IncomingFilesParts {
  /** Where files are stored while they are received. */
  readonly folder: string;
  readonly clock: Clock;
}

export class IncomingFiles {
  readonly #parts: IncomingFilesParts;
  readonly #uploadTotals = new Totals(UPLOADS_AT_ONCE_MAX);
  readonly #byteTotals = new Totals(UPLOAD_BYTES_AT_ONCE_MAX);

  constructor(parts: IncomingFilesParts) {
    this.#parts = parts;
  }

  /** Receives the file and calls `work`. Afterwards the file is deleted, unless `work` has moved it. */
  async receive<T>(
    request: FastifyRequest,
    owner: Owner,
    authorize: () => Promise<AllowedUpload> | AllowedUpload,
    work: (file: UploadedFile) => Promise<T>,
  ): Promise<T> {
    const countShare = this.#uploadTotals.open(owner);
    const byteShare = this.#byteTotals.open(owner);
    try {
      const fullLevel = countShare.take(1);
      if (fullLevel) throw tooManyUploads(fullLevel);
      const { room = {}, ...allowed } = await authorize();
      const { folder, clock } = this.#parts;
      const bounds = { folder, ...allowed, reserve: (bytesNeeded: number) => reserve(byteShare, bytesNeeded, room) };
      return await withUploadedFile(request, bounds, clock.now(), work);
    } finally {
      countShare.close();
      byteShare.close();
    }
  }
}

/** Destroys the connection of an upload that is slower than the minimum rate. */
export async function enforceMinRate({ raw }: FastifyRequest, clock: Clock): Promise<void> {
  const { socket } = raw;
  const bodyEndController = new AbortController();
  const onBodyEnd = (): void => bodyEndController.abort(new Error('the body has ended'));
  raw.once('end', onBodyEnd);
  raw.once('close', onBodyEnd);
  // The request does not emit `close` if it is answered before its body has arrived.
  socket.once('close', onBodyEnd);
  const deadlineMs = clock.monotonicMs() + UPLOAD_MS_MAX;
  while (!bodyEndController.signal.aborted) {
    const bytesBefore = socket.bytesRead;
    await clock.sleep(RATE_INTERVAL_MS, bodyEndController.signal).catch(() => {});
    const isSlow = socket.bytesRead - bytesBefore < INTERVAL_BYTES_MIN || clock.monotonicMs() > deadlineMs;
    if (isSlow && !bodyEndController.signal.aborted && !raw.complete) socket.destroy();
  }
  socket.off('close', onBodyEnd);
}

/** Reserves more bytes until `bytesNeeded` bytes are reserved in total. */
function reserve(share: Share, bytesNeeded: number, room: Partial<Bounds>): void {
  const missingBytes = bytesNeeded - share.amount;
  if (missingBytes <= 0) return;
  const stepBytes = Math.min(STEP_BYTES_MAX, share.amount);
  if (stepBytes > missingBytes && !share.take(stepBytes, room)) return;
  const fullLevel = share.take(missingBytes, room);
  if (fullLevel) throw tooManyBytes(fullLevel, room);
}

const BOUND_NAMES = { session: 'this session', application: 'this application', process: 'this server' } as const;

const tooManyUploads = ({ kind, max }: Level): Fault =>
  fault('rate_limited', `${max} uploads for ${BOUND_NAMES[kind]} are already in progress, which is the limit.`, {
    advice: 'Wait for an upload to finish, and send the request again.',
    details: { limit: max, used: max, retryAfterSeconds: 1 },
  });

const tooManyBytes = ({ kind, max, sum }: Level, room: Partial<Bounds>): Fault => {
  const limit = Math.min(max, room[kind] ?? max);
  return fault(
    'rate_limited',
    `The uploads in progress for ${BOUND_NAMES[kind]} already take up ${sum} of ${limit} bytes.`,
    {
      advice: 'Wait for an upload to finish, and send the request again.',
      details: { limit, used: sum, retryAfterSeconds: 1 },
    },
  );
};
