import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paginate } from './paginate.ts';

const plain = new Response();

test('paginate follows the next-page header if the list is an array', async () => {
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

test('paginate follows nextCursor if the list is an object', async () => {
  const found = paginate(cursor =>
    Promise.resolve({
      data: cursor === undefined ? { data: [1], nextCursor: 'more' } : { data: [2, 3] },
      response: plain,
    }),
  );
  assert.deepEqual(await Array.fromAsync(found), [1, 2, 3]);
});

test('paginate continues after an empty list page of a search that has more list pages', async () => {
  const found = paginate(before =>
    Promise.resolve(
      before === undefined
        ? { data: [], response: new Response(null, { headers: { 'x-next-before': '2' } }) }
        : { data: ['found'], response: plain },
    ),
  );
  assert.deepEqual(await Array.fromAsync(found), ['found']);
});

test('paginate treats an empty list page of a log as the last one, even if it has a next position', async () => {
  const found = paginate(() =>
    Promise.resolve({ data: [], response: new Response(null, { headers: { 'x-next-after': '7' } }) }),
  );
  assert.deepEqual(await Array.fromAsync(found), []);
});

test('paginate fetches no more list pages than the caller reads', async () => {
  let asked = 0;
  const found = paginate(() => {
    asked += 1;
    return Promise.resolve({ data: { data: ['x'], nextCursor: 'endless' }, response: plain });
  });
  for await (const _ of found) break;
  assert.equal(asked, 1);
});
