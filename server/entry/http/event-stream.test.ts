import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import type { SessionEvent } from '../../../contract/events.ts';
import { fault } from '../../domain/faults.ts';
import type { Clock } from '../../kit/clock.ts';
import { silentLog } from '../../kit/log.ts';
import { pollUntil } from '../../kit/wait.ts';
import { eventStream } from './event-stream.ts';

const EVENT: SessionEvent = {
  id: '0000000000000007',
  sessionId: '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d11',
  type: 'session.started',
  time: '2026-11-20T10:00:00.000Z',
  actor: { kind: 'service' },
  detail: { note: 'two\nlines' },
};
const EVENT_TEXT = `id: ${EVENT.id}\nevent: session.started\ndata: ${JSON.stringify(EVENT)}\n\n`;

const toStreamedItem = (event: SessionEvent) => ({ id: event.id, type: event.type, data: event });

/** A clock that moves only when the test advances it. */
class StillClock implements Clock {
  #ms = 0;
  readonly #sleepers = new Set<{ dueMs: number; wake: () => void }>();

  now(): Date {
    return new Date(this.#ms);
  }

  monotonicMs(): number {
    return this.#ms;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const sleeper = { dueMs: this.#ms + ms, wake: resolve };
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', () => {
        this.#sleepers.delete(sleeper);
        reject(signal.reason);
      });
    });
  }

  get sleeperCount(): number {
    return this.#sleepers.size;
  }

  move(ms: number): void {
    this.#ms += ms;
    for (const sleeper of this.#sleepers)
      if (sleeper.dueMs <= this.#ms) {
        this.#sleepers.delete(sleeper);
        sleeper.wake();
      }
  }
}

/** A source that yields the batches that the test adds. */
class Source {
  readonly #batches: Array<readonly SessionEvent[] | 'end'> = [];
  #more = Promise.withResolvers<void>();
  pullCount = 0;
  returned = false;

  give(batch: readonly SessionEvent[] | 'end'): void {
    this.#batches.push(batch);
    this.#more.resolve();
  }

  async *follow(): AsyncGenerator<readonly SessionEvent[], void> {
    try {
      yield [];
      for (;;) {
        this.pullCount++;
        const batch = this.#batches.shift();
        if (batch === 'end') return;
        if (batch) yield batch;
        else {
          await this.#more.promise;
          this.#more = Promise.withResolvers();
        }
      }
    } finally {
      this.returned = true;
    }
  }
}

async function openStream(checkCredential: () => Promise<unknown> = async () => {}) {
  const clock = new StillClock();
  const source = new Source();
  const laterItems = source.follow();
  await laterItems.next();
  const stream = eventStream({
    firstItems: [EVENT],
    laterBatches: laterItems,
    toStreamedItem,
    checkCredential,
    watchCredential: () => ({ close: () => {} }),
    clock,
    log: silentLog,
  });
  const receivedTexts: string[] = [];
  return { clock, source, stream, said: receivedTexts };
}

/** Reads the stream as fast as possible. */
function readInto(stream: Readable, receivedTexts: string[]): void {
  stream.on('data', piece => void receivedTexts.push(String(piece)));
  stream.on('error', () => {});
}

const waitUntilReceived = (receivedTexts: string[], text: string) =>
  pollUntil(30_000, `${JSON.stringify(text)} to be said`, () => receivedTexts.join('').includes(text) || undefined);

describe('eventStream', () => {
  it('sends stored events, then new events, and ends when its source ends', async () => {
    const { source, stream, said: receivedTexts } = await openStream();
    readInto(stream, receivedTexts);
    source.give([{ ...EVENT, id: '0000000000000008' }]);
    source.give('end');
    await once(stream, 'end');
    assert.equal(
      receivedTexts.join(''),
      `retry: 2000\n\n${EVENT_TEXT}${EVENT_TEXT.replaceAll(EVENT.id, '0000000000000008')}`,
    );
  });

  it('sends a heartbeat after 15 seconds without events', async () => {
    const { clock, source, stream, said: receivedTexts } = await openStream();
    readInto(stream, receivedTexts);
    await waitUntilReceived(receivedTexts, EVENT_TEXT);
    const look = async (ms: number): Promise<void> => {
      clock.move(ms);
      const { pullCount } = source;
      source.give([]);
      await pollUntil(30_000, 'the next look', () => source.pullCount > pullCount || undefined);
    };
    receivedTexts.length = 0;
    await look(14_999);
    assert.deepEqual(receivedTexts, []);
    await look(1);
    await waitUntilReceived(receivedTexts, ': still here\n\n');
    source.give('end');
    await once(stream, 'end');
    assert.deepEqual(receivedTexts, [': still here\n\n']);
  });

  it('ends when the credential of its reader is revoked, even if more events are available', async () => {
    const {
      clock,
      source,
      stream,
      said: receivedTexts,
    } = await openStream(async () => {
      throw fault('invalid_credentials', 'revoked');
    });
    readInto(stream, receivedTexts);
    await waitUntilReceived(receivedTexts, EVENT_TEXT);
    source.give([{ ...EVENT, id: '0000000000000008' }]);
    await waitUntilReceived(receivedTexts, '0000000000000008');
    clock.move(15_000);
    source.give([{ ...EVENT, id: '0000000000000009' }]);
    await pollUntil(30_000, 'the stream to be closed', () => stream.destroyed || undefined);
    await pollUntil(30_000, 'the source to be let go', () => source.returned || undefined);
    assert.ok(!receivedTexts.join('').includes('0000000000000009'));
  });

  it('stops reading its source while the reader is slow, and closes the stream of a reader that stops reading', async () => {
    const { clock, source, stream } = await openStream();
    const streamFailure = once(stream, 'error').catch(error => error);
    const largeEvent = { ...EVENT, detail: { note: 'x'.repeat(40_000) } };
    for (let piece = 0; piece < 20; piece++) source.give([largeEvent]);
    stream.read(0);
    await pollUntil(
      30_000,
      'the reading to stop',
      () => (stream.readableLength > 64 * 1024 && clock.sleeperCount > 0) || undefined,
    );
    assert.ok(source.pullCount < 5, `${source.pullCount} batches were asked for`);
    clock.move(29_999);
    assert.equal(stream.destroyed, false);
    clock.move(1);
    await pollUntil(30_000, 'the stream to be closed', () => stream.destroyed || undefined);
    assert.match(String((await streamFailure)[0]), /stopped reading/);
    await pollUntil(30_000, 'the source to be let go', () => source.returned || undefined);
  });

  it('closes its source and stops its timers when the reader disconnects', async () => {
    const { clock, source, stream, said: receivedTexts } = await openStream();
    readInto(stream, receivedTexts);
    await waitUntilReceived(receivedTexts, EVENT_TEXT);
    stream.destroy();
    source.give('end'); // The request's abort signal ends the source in the same way.
    await once(stream, 'close');
    assert.equal(source.returned, true);
    assert.equal(clock.sleeperCount, 0);
  });
});
