import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSessionId, metadataQuery, readFilters } from './session-filters.ts';

test('converts pairs to the query language of the API', () => {
  assert.equal(metadataQuery('run=r-1842'), "user_metadata['run']:'r-1842'");
  assert.equal(
    metadataQuery('run=1, team.name=blue'),
    "user_metadata['run']:'1' AND user_metadata['team']['name']:'blue'",
  );
  assert.equal(metadataQuery("who=it's \\ me"), "user_metadata['who']:'it\\'s \\\\ me'");
  assert.equal(metadataQuery("user_metadata['a']:'b'"), "user_metadata['a']:'b'");
  assert.equal(metadataQuery('  '), undefined);
  assert.equal(metadataQuery('no pair'), 'no pair');
});

test('ignores unknown words in the address', () => {
  assert.deepEqual(readFilters({ show: 'failed', find: 'a=b', more: 1 }), { show: 'failed', find: 'a=b' });
  assert.deepEqual(readFilters({ show: 'all' }), {});
  assert.deepEqual(readFilters({ show: 'nothing', find: 7 }), {});
});

test('distinguishes an id from metadata', () => {
  assert.equal(isSessionId(' 01A1FB0F-8a6d-7bc2-a144-66b1e6013d1b '), true);
  assert.equal(isSessionId('run=01a1fb0f'), false);
});
