import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lateFunction } from './late.ts';

test('a late function calls the function that was bound to it, and returns the result', () => {
  const sum = lateFunction<[number, number], number>('sum');
  const { call } = sum;
  sum.bind((one, other) => one + other);
  assert.equal(call(2, 3), 5);
});

test('throws if the function is called before it is bound, or if it is bound twice', () => {
  const end = lateFunction<[], void>('end');
  assert.throws(() => end.call(), /end was called before it was bound/);
  end.bind(() => {});
  assert.throws(() => end.bind(() => {}), /end is already bound/);
});
