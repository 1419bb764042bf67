import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Turns } from './turns.ts';

test('one after the other for a key, in order, whatever becomes of them; other keys do not wait', async () => {
  const turns = new Turns<string>();
  const seen: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = turns.run('a', async () => {
    seen.push('first begins');
    await gate.promise;
    seen.push('first ends');
    throw new Error('no luck');
  });
  const second = turns.run('a', async () => seen.push('second'));
  await turns.run('b', async () => seen.push('other'));
  gate.resolve();
  await assert.rejects(first, /no luck/);
  await second;
  await turns.run('a', async () => seen.push('third'));
  assert.deepEqual(seen, ['first begins', 'other', 'first ends', 'second', 'third']);
});
