// Server-sent events (WHATWG HTML, 9.2). The source is read only as fast as the reader reads. If a reader stops
// reading, its stream is closed, and the reader reconnects with Last-Event-ID.
import { Readable } from 'node:stream';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';

export const EVENT_STREAM = 'text/event-stream';

/**
 * The interval at which a stream without events sends a comment, and at which the reader's credential is checked again.
 */
const HEARTBEAT_INTERVAL_MS = 15_000;
/** A stream is closed if its reader takes longer than this to read one piece. */
const STALL_TIMEOUT_MS = 30_000;
/** The delay after which a disconnected reader reconnects. */
const RETRY_DELAY_MS = 2_000;
const WAITING_BYTES_MAX = 64 * 1024;

export interface StreamedItem {
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
}

export interface EventStreamParts<Item> extends Pick<Runtime, 'clock' | 'log'> {
  readonly firstItems: readonly Item[];
  /** Yields an empty list from time to time if there is nothing new. */
  readonly laterBatches: AsyncGenerator<readonly Item[], void>;
  readonly toStreamedItem: (item: Item) => StreamedItem;
  /** Rejects if the reader's credential is no longer valid. */
  readonly checkCredential: () => Promise<unknown>;
  /** Calls `end` as soon as the reader's credential is no longer valid. */
  readonly watchCredential: (end: () => void) => Closeable;
}

export function eventStream<Item>(parts: EventStreamParts<Item>): Readable {
  const closeAsTooSlow = (): void => void stream.destroy(new Error('the client stopped reading the stream'));
  const stream = Readable.from(withStallLimit(pieces(parts), parts.clock, closeAsTooSlow), {
    objectMode: false,
    highWaterMark: WAITING_BYTES_MAX,
  });
  stream.on('error', error => parts.log.info('events.stream_broken', { reason: reason(error) }));
  const credentialWatch = parts.watchCredential(
    () => void stream.destroy(new Error('the agent key has expired or was revoked')),
  );
  stream.once('close', () => void credentialWatch.close());
  // If the stream is destroyed before `pieces` has started to read `laterBatches`, nothing else closes that generator.
  stream.once('close', () => void parts.laterBatches.return());
  return stream;
}

async function* pieces<Item>(parts: EventStreamParts<Item>): AsyncGenerator<string, void> {
  const { firstItems: first, laterBatches: rest, checkCredential, clock } = parts;
  const toPiece = (item: Item): string => pieceOf(parts.toStreamedItem(item));
  yield `retry: ${RETRY_DELAY_MS}\n\n${first.map(toPiece).join('')}`;
  let lastSentMs = clock.monotonicMs();
  let lastCheckedMs = lastSentMs;
  for await (const items of rest) {
    const now = clock.monotonicMs();
    if (now - lastCheckedMs >= HEARTBEAT_INTERVAL_MS) {
      await checkCredential();
      lastCheckedMs = now;
    }
    if (items.length === 0 && now - lastSentMs < HEARTBEAT_INTERVAL_MS) continue;
    yield items.length > 0 ? items.map(toPiece).join('') : ': still here\n\n';
    lastSentMs = now;
  }
}

const pieceOf = ({ id, type, data }: StreamedItem): string =>
  `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;

/** Yields the pieces of the stream, and calls `closeAsTooSlow` if a piece is not read in time. */
async function* withStallLimit(
  texts: AsyncGenerator<string, void>,
  clock: Clock,
  closeAsTooSlow: () => void,
): AsyncGenerator<string, void> {
  for await (const text of texts) {
    const stallController = new AbortController();
    // `sleep` rejects if the piece was read in time
    clock.sleep(STALL_TIMEOUT_MS, stallController.signal).then(closeAsTooSlow, () => {});
    try {
      yield text;
    } finally {
      stallController.abort();
    }
  }
}
