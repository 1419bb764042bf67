// Tests that a list cursor is valid for one list and one owner, for a day.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Clock } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import { Secret } from '../../kit/secret.ts';
import { Cursors, listPageOf } from './cursors.ts';

const HOUR_MS = 3_600_000;
const NAME = { list: 'keys', owner: 'a' };

function movableClock(): Clock & { ms: number } {
  const clock = { ms: 0, now: () => new Date(clock.ms), monotonicMs: () => clock.ms, sleep: async () => {} };
  return clock;
}

const assertRefused = (read: () => unknown): void => assert.throws(read, error => isFault(error, 'invalid_request'));

test('returns the id from a cursor for up to a day', () => {
  const clock = movableClock();
  const cursors = new Cursors(new Secret('s'.repeat(32)), clock);
  const cursor = cursors.after(NAME, 'id-1');
  clock.ms = 24 * HOUR_MS - 1;
  assert.equal(cursors.read(NAME, cursor), 'id-1');
  clock.ms = 24 * HOUR_MS;
  assertRefused(() => cursors.read(NAME, cursor));
});

test('refuses an altered cursor, and a cursor of another list, owner or installation', () => {
  const cursors = new Cursors(new Secret('s'.repeat(32)), movableClock());
  const cursor = cursors.after(NAME, 'id-1');
  assertRefused(() => cursors.read({ ...NAME, list: 'tokens' }, cursor));
  assertRefused(() => cursors.read({ ...NAME, owner: 'b' }, cursor));
  assertRefused(() => new Cursors(new Secret('t'.repeat(32)), movableClock()).read(NAME, cursor));
  assertRefused(() => cursors.read(NAME, `x${cursor}`));
  for (const text of ['', '.', 'x', 'x.y', 'a.b.c']) assertRefused(() => cursors.read(NAME, text));
});

test('returns a next cursor only if there are more rows', () => {
  const rows = ['c', 'b', 'a'].map(id => ({ id }));
  assert.deepEqual(
    listPageOf(
      rows,
      2,
      row => row.id,
      id => `after-${id}`,
    ),
    { data: ['c', 'b'], nextCursor: 'after-b' },
  );
  assert.deepEqual(
    listPageOf(
      rows,
      3,
      row => row.id,
      id => id,
    ),
    { data: ['c', 'b', 'a'] },
  );
});
