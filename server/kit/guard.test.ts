import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guardListener } from './guard.ts';

test('passes errors of a listener to the error handler', async () => {
  const failures: unknown[] = [];
  const heard: string[] = [];
  const listen = guardListener(
    (error, [word]) => failures.push(`${word}: ${error}`),
    (word: string) => {
      heard.push(word);
      if (word === 'throws') throw new Error(word);
      return word === 'rejects' ? Promise.reject(new Error(word)) : Promise.resolve();
    },
  );
  for (const word of ['fine', 'throws', 'rejects', 'fine']) listen(word);
  await new Promise(setImmediate);
  assert.deepEqual(heard, ['fine', 'throws', 'rejects', 'fine']);
  assert.deepEqual(failures, ['throws: Error: throws', 'rejects: Error: rejects']);
});
