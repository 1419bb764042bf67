// Limits on responses that are being sent: unread bytes are counted, the number of streamed responses is limited, and a
// connection whose client does not read is closed.
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { fault } from '../../domain/faults.ts';
import type { Caller } from '../../domain/identity/caller.ts';
import type { WaitingBytes } from '../../domain/limits/waiting-bytes.ts';
import { type Bounds, Totals } from '../../kit/totals.ts';

/**
 * The maximum number of files, playlists, archives and event streams that are being sent at once. Requests without a
 * credential are counted by their IP address.
 */
const STREAMED_RESPONSES_MAX: Bounds = { session: 200, application: 200, process: 1000 };
/** Smaller responses fit into the kernel's socket buffers, and are not counted. */
const COUNTED_BYTES_MIN = 64 * 1024;
/** A connection whose client reads nothing for this long is closed. */
const SILENCE_TIMEOUT_MS = 60_000;

interface ResponseLimitParts {
  readonly waitingBytes: WaitingBytes;
  readonly callerOf: (request: FastifyRequest) => Caller | undefined;
  readonly streamsMax?: Bounds;
  readonly silenceMs?: number;
}

export function limitResponses(app: FastifyInstance, parts: ResponseLimitParts): void {
  const { waitingBytes, callerOf, streamsMax = STREAMED_RESPONSES_MAX, silenceMs = SILENCE_TIMEOUT_MS } = parts;
  const streamTotals = new Totals(streamsMax);
  app.addHook('onSend', (request, reply, payload, done) => {
    const bytes = bytesOf(payload);
    if (bytes !== undefined && bytes < COUNTED_BYTES_MIN) return done();
    if (reply.raw.destroyed) return done(); // `close` was already emitted, so the response would be counted forever.
    const owner = { application: ownerOf(request, callerOf(request)) };
    const { socket } = request.raw;
    if (bytes === undefined) {
      const share = streamTotals.open(owner);
      const fullLevel = share.take(1);
      if (fullLevel) {
        share.close();
        discard(payload);
        return done(tooManyStreams(fullLevel.max));
      }
      reply.raw.once('close', () => share.close());
    }
    const bytesWatch = waitingBytes.watch(owner, { bytes: () => socket.writableLength, close: () => socket.destroy() });
    const noteBytes = (): void => bytesWatch.note();
    socket.on('drain', noteBytes);
    reply.raw.once('close', () => {
      socket.off('drain', noteBytes);
      bytesWatch.close();
    });
    // On expiry, Node destroys the socket. After the response, Node sets a timeout of its own.
    socket.setTimeout(silenceMs);
    done();
    noteBytes();
  });
}

/** The size of a payload. Undefined for a stream, whose length is unknown. */
function bytesOf(payload: unknown): number | undefined {
  if (payload === null || payload === undefined) return 0;
  return typeof payload === 'string' || Buffer.isBuffer(payload) ? Buffer.byteLength(payload) : undefined;
}

const ownerOf = ({ ip }: FastifyRequest, caller: Caller | undefined): string =>
  caller?.kind === 'account' ? caller.accountId : (caller?.applicationId ?? ip);

function discard(payload: unknown): void {
  if (payload instanceof Readable) payload.destroy();
}

const tooManyStreams = (limit: number): Error =>
  fault('rate_limited', `${limit} files and streams are already being sent, which is the limit.`, {
    advice: 'Read one of the responses to its end, or close its connection.',
    details: { limit, used: limit },
  });
