import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LogChunk } from '../../engines/store/rows/logs.ts';
import type { Clock } from '../../kit/clock.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { entryOf, type LogEntry } from './entry.ts';
import { SHARES } from './limits.ts';
import { ENTRIES_DROPPED, SessionLog } from './session-log.ts';

class Scene {
  nowMs = 1_000_000;
  isDown = false;
  /** Chunks by the number of their first line, as in the database table. */
  readonly chunks = new Map<number, LogChunk>();
  readonly clock: Clock = { now: () => new Date(this.nowMs), monotonicMs: () => this.nowMs, sleep: async () => {} };
  readonly parts = {
    application: 'app' as ApplicationId,
    session: 'session' as SessionId,
    rows: {
      write: async (_: ApplicationId, __: SessionId, chunks: readonly LogChunk[]) => {
        if (this.isDown) throw new Error('down');
        for (const chunk of chunks) this.chunks.set(chunk.first, chunk);
      },
    },
    clock: this.clock,
    log: silentLog,
  };

  get entries(): LogEntry[] {
    return [...this.chunks.values()].flatMap(({ lines }) => lines.map(line => entryOf(line) ?? assert.fail(line)));
  }

  /** Fails if lines overlap or are missing. */
  assertNoGap(first = 1): void {
    let next = first;
    for (const chunk of [...this.chunks.values()].sort((one, other) => one.first - other.first)) {
      assert.equal(chunk.first, next);
      next += chunk.lines.length;
    }
  }
}

const consoleEntry = (text: string, at = 0) =>
  ({ at, kind: 'console', method: 'Runtime.consoleAPICalled', params: { text } }) as const;

describe('SessionLog', () => {
  it('numbers entries without gaps, and orders the entries of one write by time', async () => {
    const scene = new Scene();
    const log = new SessionLog(scene.parts);
    log.add(consoleEntry('second', 2));
    log.add(consoleEntry('first', 1));
    await log.write();
    log.add(consoleEntry('third', 1));
    await log.write();
    assert.deepEqual(
      scene.entries.map(({ params }) => params.text),
      ['first', 'second', 'third'],
    );
    assert.equal(scene.chunks.size, 1, 'the open chunk is rewritten');
    scene.assertNoGap();
  });

  it('continues the log of an earlier process with a gap marker, and counts the earlier entries towards the limits', async () => {
    const scene = new Scene();
    const used = { console: { entries: SHARES.console.entries - 1, bytes: 10 } };
    const log = new SessionLog(scene.parts, { last: 41, kinds: used, consoleStoredUntilMs: 0 });
    log.markGap(5, 9);
    log.add(consoleEntry('one fits'));
    log.add(consoleEntry('one does not'));
    await log.close();
    scene.assertNoGap(42);
    const [first, ...rest] = scene.entries.sort((one, other) => one.method.localeCompare(other.method));
    assert.deepEqual(first?.params, { type: 'any', reason: 'restart', from: 5, to: 9 });
    assert.deepEqual(
      rest.map(({ params }) => params.reason ?? params.text),
      ['limit', 'one fits'],
    );
  });

  it('drops entries beyond the limit of their kind, and stores how many entries were dropped', async () => {
    const scene = new Scene();
    const log = new SessionLog(scene.parts);
    const many = SHARES.console.entries + 5_000;
    for (let index = 0; index < many; index++) {
      log.add(consoleEntry(`line ${index}`, index));
      if (index % 1_000 === 0) await log.write();
    }
    log.add({ at: many, kind: 'page', method: 'Page.frameNavigated', params: {} });
    for (let write = 0; write < 5; write++) {
      scene.nowMs += 1_000;
      await log.write();
    }
    const markers = scene.entries.filter(({ method }) => method === ENTRIES_DROPPED);
    const kept = scene.entries.filter(({ method }) => method === 'Runtime.consoleAPICalled');
    const droppedCount = markers.reduce((sum, { params }) => sum + Number(params.count), 0);
    assert.equal(kept.length + droppedCount, many);
    assert.ok(markers.length >= 1 && markers.length <= 3, `${markers.length} markers`);
    assert.ok(
      scene.entries.some(({ kind }) => kind === 'page'),
      'entries of other kinds are stored',
    );
    scene.assertNoGap();
  });

  it('buffers a limited number of bytes while the database is down, and stores how many entries were dropped', async () => {
    const scene = new Scene();
    const log = new SessionLog(scene.parts);
    scene.isDown = true;
    for (let index = 0; index < 2_000; index++) {
      log.add({ ...consoleEntry('x'.repeat(4_000), index), kind: 'network', method: 'Network.requestWillBeSent' });
      if (index % 100 === 0) await log.write();
    }
    assert.equal(scene.chunks.size, 0);
    scene.isDown = false;
    for (let write = 0; write < 3; write++) {
      scene.nowMs += 60_000;
      await log.write();
    }
    const markers = scene.entries.filter(({ method }) => method === ENTRIES_DROPPED);
    const droppedCount = markers.reduce((sum, { params }) => sum + Number(params.count), 0);
    assert.ok(markers.every(({ params }) => params.reason === 'waiting') && droppedCount > 0);
    assert.equal(scene.entries.length - markers.length + droppedCount, 2_000);
    assert.ok(scene.entries.reduce((sum, entry) => sum + JSON.stringify(entry).length, 0) < 9 * 1024 ** 2);
    scene.assertNoGap();
  });

  it('redacts typed text in later entries', async () => {
    const scene = new Scene();
    const log = new SessionLog(scene.parts);
    log.typedText.rememberText('hunter2-secret');
    log.add(consoleEntry('you typed hunter2-secret'));
    await log.write();
    assert.deepEqual(
      scene.entries.map(({ params }) => params.text),
      ['you typed [redacted]'],
    );
  });

  it('truncates an entry that is too long, and marks the entry as truncated', async () => {
    const scene = new Scene();
    const log = new SessionLog(scene.parts);
    log.add(consoleEntry('x'.repeat(100_000)));
    await log.write();
    assert.equal(scene.entries[0]?.params.cut, true);
  });
});
