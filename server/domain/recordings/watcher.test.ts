import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Recorder, RecordingOptions } from '../../engines/recorder/recorder.ts';
import type { NamedEvent } from '../../engines/store/rows/events.ts';
import type { OmittedPage } from '../../engines/store/rows/recordings.ts';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import { systemClock } from '../../kit/clock.ts';
import { silentLog } from '../../kit/log.ts';
import type { ObservedTarget } from '../sessions/browser-host.ts';
import type { LiveSession } from '../sessions/live.ts';
import { PAGES_MAX, PageNumbers } from '../sessions/page-numbers.ts';
import { recordingWatcher } from './watcher.ts';

const ID = '0190a000-0000-7000-8000-000000000001';

test('reports all pages beyond the limit in one event, and records each of these pages as omitted', async () => {
  const recordedPages: number[] = [];
  const omittedPages: OmittedPage[] = [];
  const events: NamedEvent[] = [];
  let options: RecordingOptions | undefined;
  const recording = {
    recordPage: (_: unknown, page: number) => void recordedPages.push(page),
    settle: async () => {},
  };
  const recorder = {
    record: async (asked: RecordingOptions) => {
      options = asked;
      return recording;
    },
  };
  const rows = { list: async () => [], add: async () => {} };
  const watcher = recordingWatcher({
    recorder: recorder as unknown as Recorder,
    storage: { picture: async () => {} },
    pages: new PageNumbers({ rows, clock: systemClock, log: silentLog }),
    rows: { recordOmission: async (_, page) => void omittedPages.push(page) },
    events: { append: async (_, event) => void events.push(event) },
    clock: systemClock,
    log: silentLog,
  });
  let reportTarget: (target: ObservedTarget) => void = () => {};
  const browser = {
    observe: async ({ target }: { target: typeof reportTarget }) => {
      reportTarget = target;
      return { close: () => {} };
    },
  };
  const row = { id: ID, status: 'PENDING', settings: {} } as unknown as SessionRow;
  const live = { browser, onCover: () => ({ close: () => {} }) };
  await watcher.attend?.(live as unknown as LiveSession, row, new AbortController().signal);
  for (let n = 0; n < PAGES_MAX + 2; n++) reportTarget({ id: `tab-${n}`, kind: 'page' } as unknown as ObservedTarget);
  assert.deepEqual([recordedPages.length, recordedPages.at(-1)], [PAGES_MAX, PAGES_MAX - 1]);
  assert.deepEqual(omittedPages, [
    { why: 'too_many_in_all', targetId: `tab-${PAGES_MAX}` },
    { why: 'too_many_in_all', targetId: `tab-${PAGES_MAX + 1}` },
  ]);
  options?.reportShortfall('too_many_at_once', 'tab-9', 9);
  options?.reportShortfall('backlog');
  options?.reportShortfall('backlog');
  assert.deepEqual(
    events.map(({ type, detail }) => [type, detail]),
    [
      ['recording.limited', { reason: 'too_many_in_all' }],
      ['recording.limited', { reason: 'too_many_at_once', pageId: '9' }],
      ['recording.limited', { reason: 'backlog' }],
    ],
  );
  assert.deepEqual(omittedPages.at(-1), { why: 'too_many_at_once', targetId: 'tab-9', page: 9 });
});

test('ends the recording of a session that failed to start and was not salvaged', () => {
  const finishedIds: string[] = [];
  const recordedIds = new Set([ID]);
  const recorder = {
    sessionOf: (id: string) => (recordedIds.has(id) ? {} : undefined),
    finish: async (id: string) => void finishedIds.push(id),
  };
  const watcher = recordingWatcher({
    recorder: recorder as unknown as Recorder,
    storage: { picture: async () => {} },
    pages: new PageNumbers({ rows: { list: async () => [], add: async () => {} }, clock: systemClock, log: silentLog }),
    rows: { recordOmission: async () => {} },
    events: { append: async () => {} },
    clock: systemClock,
    log: silentLog,
  });
  const rowOf = (id: string) => ({ id, settings: {} }) as unknown as SessionRow;
  watcher.ended?.(rowOf(ID));
  watcher.ended?.(rowOf('0190a000-0000-7000-8000-000000000002'));
  assert.deepEqual(finishedIds, [ID]);
});
