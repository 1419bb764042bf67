import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TurnQueue } from './turns.ts';

test('runs work with the same key sequentially, even after a failure, and work with different keys concurrently', async () => {
  const turns = new TurnQueue<string>();
  const done: string[] = [];
  const gate = Promise.withResolvers<void>();
  const firstRun = turns.run('a', async () => {
    await gate.promise;
    done.push('first');
    throw new Error('no');
  });
  const secondRun = turns.run('a', async () => done.push('second'));
  await turns.run('b', async () => done.push('other'));
  assert.deepEqual(done, ['other']);
  gate.resolve();
  await assert.rejects(firstRun, /no/);
  await secondRun;
  assert.deepEqual(done, ['other', 'first', 'second']);
});
