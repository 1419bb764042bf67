import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSessionId, listQuery, readFilters, searchQuery } from './session-filters.ts';

test('searchQuery converts name=value pairs to the query language of the API', () => {
  assert.equal(searchQuery('run=r-1842'), "user_metadata['run']:'r-1842'");
  assert.equal(
    searchQuery('run=1, team.name=blue'),
    "user_metadata['run']:'1' AND user_metadata['team']['name']:'blue'",
  );
  assert.equal(searchQuery("who=it's \\ me"), "user_metadata['who']:'it\\'s \\\\ me'");
  assert.equal(searchQuery("user_metadata['a']:'b'"), "user_metadata['a']:'b'");
  assert.equal(searchQuery('  '), undefined);
});

test('searchQuery treats text that is not a list of name=value pairs as search words', () => {
  assert.equal(searchQuery(' customer  42 '), 'customer 42');
  assert.equal(searchQuery('run=1, and more'), 'run=1, and more');
  assert.equal(searchQuery('a b c d e f g h i j k'), 'a b c d e f g h i j');
});

test('listQuery converts filters to the query for the session list', () => {
  const key = '01a1fb0f-8a6d-7bc2-a144-66b1e6013d1b';
  const filters = readFilters({ show: 'failed', find: '42', reason: 'crashed', key, since: 'day' });
  assert.deepEqual(listQuery(filters, Date.parse('2026-11-23T10:00:30.500Z')), {
    ...{ status: 'ERROR', q: '42', endReason: 'crashed', keyId: key },
    createdAfter: '2026-11-22T10:00:00.000Z',
  });
  assert.deepEqual(listQuery({}, 0), {});
});

test('readFilters ignores unknown and invalid filters in the address', () => {
  assert.deepEqual(readFilters({ show: 'failed', find: 'a=b', more: 1 }), { show: 'failed', find: 'a=b' });
  assert.deepEqual(readFilters({ show: 'all' }), {});
  assert.deepEqual(readFilters({ show: 'nothing', find: 7, reason: 'bored', key: 'x', since: 'toString' }), {});
});

test('isSessionId returns true for a session id with any case and with spaces around it, and false for a metadata search', () => {
  assert.equal(isSessionId(' 01A1FB0F-8a6d-7bc2-a144-66b1e6013d1b '), true);
  assert.equal(isSessionId('run=01a1fb0f'), false);
});
