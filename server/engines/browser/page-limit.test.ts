import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OPEN_PAGES_MAX, PageLimit } from './page-limit.ts';

function openPages(limit: PageLimit, count: number): void {
  for (let n = 0; n < count; n++) assert.ok(limit.admits(`page-${n}`));
}

test('refuses a page beyond the limit, and admits a new page after an open page is closed', () => {
  const limit = new PageLimit();
  limit.activate();
  openPages(limit, OPEN_PAGES_MAX);
  assert.equal(limit.isReached, true);
  assert.equal(limit.admits('refused'), false);
  assert.deepEqual([limit.isRefused('refused'), limit.isRefused('page-0')], [true, false]);
  limit.forget('page-0');
  assert.equal(limit.admits('later'), true);
});

test('closing a refused page forgets that page, but makes no room for another page', () => {
  const limit = new PageLimit();
  limit.activate();
  openPages(limit, OPEN_PAGES_MAX);
  limit.admits('refused');
  limit.forget('refused');
  assert.deepEqual([limit.isRefused('refused'), limit.isReached], [false, true]);
});

test('keeps all pages that existed before the limit was activated, even if there are more than the limit allows', () => {
  const limit = new PageLimit();
  openPages(limit, OPEN_PAGES_MAX + 5);
  limit.activate();
  assert.equal(limit.admits('new'), false);
});

test('admits a page that the server itself creates, even if the limit is reached', async () => {
  const limit = new PageLimit();
  limit.activate();
  openPages(limit, OPEN_PAGES_MAX);
  assert.equal(await limit.createOwn(async () => limit.admits('own')), true);
  await assert.rejects(limit.createOwn(() => Promise.reject(new Error('the browser is closed'))));
  assert.equal(limit.admits('new'), false);
});

test('reports each refused page once, including pages that were refused before the listener was set', () => {
  const limit = new PageLimit();
  limit.activate();
  openPages(limit, OPEN_PAGES_MAX);
  limit.admits('first');
  let reportCount = 0;
  limit.onRefused(() => void reportCount++);
  assert.equal(reportCount, 1);
  limit.admits('second');
  assert.equal(reportCount, 2);
});
