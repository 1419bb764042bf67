import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paginate } from './paginate.ts';

const plainResponse = new Response();

test('paginate follows the x-next-before header if the list is an array', async () => {
  const requestedCursors: Array<string | undefined> = [];
  const items = paginate(before => {
    requestedCursors.push(before);
    return Promise.resolve(
      before === undefined
        ? { data: ['a', 'b'], response: new Response(null, { headers: { 'x-next-before': '2' } }) }
        : { data: ['c'], response: plainResponse },
    );
  });
  assert.deepEqual(await Array.fromAsync(items), ['a', 'b', 'c']);
  assert.deepEqual(requestedCursors, [undefined, '2']);
});

test('paginate follows nextCursor if the list is an object', async () => {
  const items = paginate(cursor =>
    Promise.resolve({
      data: cursor === undefined ? { data: [1], nextCursor: 'more' } : { data: [2, 3] },
      response: plainResponse,
    }),
  );
  assert.deepEqual(await Array.fromAsync(items), [1, 2, 3]);
});

test('paginate continues after an empty list page of a search that has more list pages', async () => {
  const items = paginate(before =>
    Promise.resolve(
      before === undefined
        ? { data: [], response: new Response(null, { headers: { 'x-next-before': '2' } }) }
        : { data: ['found'], response: plainResponse },
    ),
  );
  assert.deepEqual(await Array.fromAsync(items), ['found']);
});

test('paginate stops at an empty list page of a log, even if the response has an x-next-after header', async () => {
  const items = paginate(() =>
    Promise.resolve({ data: [], response: new Response(null, { headers: { 'x-next-after': '7' } }) }),
  );
  assert.deepEqual(await Array.fromAsync(items), []);
});

test('paginate fetches no more list pages than the caller reads', async () => {
  let requestCount = 0;
  const items = paginate(() => {
    requestCount += 1;
    return Promise.resolve({ data: { data: ['x'], nextCursor: 'endless' }, response: plainResponse });
  });
  for await (const _ of items) break;
  assert.equal(requestCount, 1);
});
