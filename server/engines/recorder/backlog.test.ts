import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Backlog } from './backlog.ts';

test('once a session reaches its limit, the backlog is full for that session only, until a quarter of the limit has been stored', () => {
  const backlog = new Backlog({ sessionBytes: 100, hostBytes: 1_000 });
  backlog.recordChange('one', 99);
  assert.equal(backlog.isFullFor('one'), false);
  backlog.recordChange('one', 1);
  assert.deepEqual([backlog.isFullFor('one'), backlog.isFullFor('other')], [true, false]);
  backlog.recordChange('one', -20);
  assert.equal(backlog.isFullFor('one'), true, 'still full after the first stored segment');
  backlog.recordChange('one', -5);
  assert.equal(backlog.isFullFor('one'), false);
});

test('the backlog is full for all sessions while their total is at the limit of the host', () => {
  const backlog = new Backlog({ sessionBytes: 100, hostBytes: 150 });
  backlog.recordChange('one', 80);
  backlog.recordChange('other', 70);
  assert.deepEqual([backlog.isFullFor('one'), backlog.isFullFor('third')], [true, true]);
  backlog.recordChange('other', -70);
  assert.equal(backlog.isFullFor('third'), false);
  assert.equal(backlog.bytes, 80);
});
