import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guardListener } from './guard.ts';

test('passes errors of a listener to the error handler', async () => {
  const failures: unknown[] = [];
  const heardWords: string[] = [];
  const guardedListener = guardListener(
    (error, [word]) => failures.push(`${word}: ${error}`),
    (word: string) => {
      heardWords.push(word);
      if (word === 'throws') throw new Error(word);
      return word === 'rejects' ? Promise.reject(new Error(word)) : Promise.resolve();
    },
  );
  for (const word of ['fine', 'throws', 'rejects', 'fine']) guardedListener(word);
  await new Promise(setImmediate);
  assert.deepEqual(heardWords, ['fine', 'throws', 'rejects', 'fine']);
  assert.deepEqual(failures, ['throws: Error: throws', 'rejects: Error: rejects']);
});
