import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paginate } from './paginate.ts';

const plain = new Response();

test('follows the header of lists that are arrays', async () => {
  const asked: Array<string | undefined> = [];
  const found = paginate(before => {
    asked.push(before);
    return Promise.resolve(
      before === undefined
        ? { data: ['a', 'b'], response: new Response(null, { headers: { 'x-next-before': '2' } }) }
        : { data: ['c'], response: plain },
    );
  });
  assert.deepEqual(await Array.fromAsync(found), ['a', 'b', 'c']);
  assert.deepEqual(asked, [undefined, '2']);
});

test('follows nextCursor of lists that are objects', async () => {
  const found = paginate(cursor =>
    Promise.resolve({
      data: cursor === undefined ? { data: [1], nextCursor: 'more' } : { data: [2, 3] },
      response: plain,
    }),
  );
  assert.deepEqual(await Array.fromAsync(found), [1, 2, 3]);
});

test('treats an empty list page as the last one, even if it names a next position', async () => {
  const found = paginate(() =>
    Promise.resolve({ data: [], response: new Response(null, { headers: { 'x-next-after': '7' } }) }),
  );
  assert.deepEqual(await Array.fromAsync(found), []);
});

test('requests no more list pages than are read', async () => {
  let asked = 0;
  const found = paginate(() => {
    asked += 1;
    return Promise.resolve({ data: { data: ['x'], nextCursor: 'endless' }, response: plain });
  });
  for await (const _ of found) break;
  assert.equal(asked, 1);
});
