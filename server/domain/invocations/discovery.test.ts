import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchesFilters } from './discovery.ts';

const OPERATION = {
  id: 'orders.cancel',
  title: 'Cancel an order',
  description: 'Before it is SHIPPED.',
  kind: 'http',
  effect: 'write',
} as const;

for (const [filters, expected] of [
  [{}, true],
  [{ q: 'ORDER shipped' }, true],
  [{ q: ' orders.c  ' }, true],
  [{ q: 'order refund' }, false],
  [{ q: '.*' }, false],
  [{ kind: 'http' }, true],
  [{ kind: 'managed' }, false],
  [{ effect: 'write', q: 'cancel' }, true],
  [{ effect: 'read', q: 'cancel' }, false],
] as const)
  test(`a search with the filters ${JSON.stringify(filters)} ${expected ? 'finds' : 'does not find'} the operation`, () => {
    assert.equal(matchesFilters(OPERATION, filters), expected);
  });
