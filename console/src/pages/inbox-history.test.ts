import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApplicationAction } from '../../../contract/actions.ts';
import type { Handoff } from '../../../contract/handoffs.ts';
import { historyOf } from './inbox-history.ts';

const timeAt = (minute: number): string => new Date(minute * 60_000).toISOString();
const action = (minute: number, status = 'approved') =>
  // Contains only the fields that historyOf reads.
  ({ jobId: `a${minute}`, createdAt: timeAt(minute), status }) as ApplicationAction;
const handoff = (minute: number, more: Partial<Handoff> = {}) =>
  ({ id: `h${minute}`, createdAt: timeAt(minute), endedAt: timeAt(minute), origin: 'api', ...more }) as Handoff;

const idsOf = (entries: ReturnType<typeof historyOf>): string[] => entries.map(({ id }) => id);

test('historyOf merges Actions and hand-offs, newest first, and omits open entries and hand-offs started by a viewer', () => {
  const { endedAt: _, ...open } = handoff(9);
  const entries = historyOf(
    { items: [action(8), action(7, 'awaiting_approval'), action(3)], hasMore: false },
    { items: [open, handoff(5), handoff(4, { origin: 'viewer' }), handoff(1)], hasMore: false },
  );
  assert.deepEqual(idsOf(entries), ['a8', 'h5', 'a3', 'h1']);
});

test('historyOf omits entries older than the last loaded entry of an incomplete list', () => {
  const entries = historyOf(
    { items: [action(8), action(6)], hasMore: true },
    { items: [handoff(7), handoff(5), handoff(2)], hasMore: false },
  );
  assert.deepEqual(idsOf(entries), ['a8', 'h7', 'a6']);
});
