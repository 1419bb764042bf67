// What happens, as server-sent events (WHATWG HTML, 9.2). What a reader does not take is not read either; one that takes
// nothing for a while is closed, and comes back with Last-Event-ID.
import { Readable } from 'node:stream';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';

export const EVENT_STREAM = 'text/event-stream';

/** So often a stream with nothing to say shows that it lives, and its reader's credential is looked at again. */
const HEARTBEAT_MS = 15_000;
/** A reader that does not take one piece within this is closed. */
const STALLED_MS = 30_000;
/** After which a reader that was closed asks again. */
const RETRY_MS = 2_000;
const WAITING_BYTES_MAX = 64 * 1024;

export interface StreamedItem {
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
}

export interface EventStreamParts<Item> {
  readonly first: readonly Item[];
  /** Yields now and then, also when there is nothing. */
  readonly rest: AsyncGenerator<readonly Item[], void>;
  readonly shown: (item: Item) => StreamedItem;
  /** Rejects when the reader may not read any more. */
  readonly demandCredential: () => Promise<unknown>;
  /** Calls `end` when the reader may not read any more, as soon as that is known. */
  readonly whileAllowed: (end: () => void) => Closeable;
  readonly clock: Clock;
  readonly log: Log;
}

export function eventStream<Item>(parts: EventStreamParts<Item>): Readable {
  const tooSlow = (): void => void stream.destroy(new Error('the reader takes nothing'));
  const stream = Readable.from(watched(pieces(parts), parts.clock, tooSlow), {
    objectMode: false,
    highWaterMark: WAITING_BYTES_MAX,
  });
  stream.on('error', error => parts.log.info('events.stream_broken', { reason: reason(error) }));
  const allowed = parts.whileAllowed(() => void stream.destroy(new Error('the agent key has ended')));
  stream.once('close', () => void allowed.close());
  // A generator that was not asked yet would not come to its own end.
  stream.once('close', () => void parts.rest.return());
  return stream;
}

async function* pieces<Item>(parts: EventStreamParts<Item>): AsyncGenerator<string, void> {
  const { first, rest, demandCredential, clock } = parts;
  const piece = (item: Item): string => pieceOf(parts.shown(item));
  yield `retry: ${RETRY_MS}\n\n${first.map(piece).join('')}`;
  let saidMs = clock.monotonicMs();
  let checkedMs = saidMs;
  for await (const events of rest) {
    const now = clock.monotonicMs();
    if (now - checkedMs >= HEARTBEAT_MS) {
      await demandCredential();
      checkedMs = now;
    }
    if (events.length === 0 && now - saidMs < HEARTBEAT_MS) continue;
    yield events.length > 0 ? events.map(piece).join('') : ': still here\n\n';
    saidMs = now;
  }
}

const pieceOf = ({ id, type, data }: StreamedItem): string =>
  `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;

/** Passes the pieces on, and says so when one of them is not taken in time. */
async function* watched(
  from: AsyncGenerator<string, void>,
  clock: Clock,
  tooSlow: () => void,
): AsyncGenerator<string, void> {
  for await (const text of from) {
    const taken = new AbortController();
    clock.sleep(STALLED_MS, taken.signal).then(tooSlow, () => {}); // taken
    try {
      yield text;
    } finally {
      taken.abort();
    }
  }
}
