import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LivingHost } from '../../engines/store/rows/hosts.ts';
import type { HostId } from '../../kit/ids.ts';
import { selectHost } from './placement.ts';

const OWN = 'b' as HostId;

const host = (id: string, change: Partial<LivingHost> = {}): LivingHost => ({
  ...{ id: id as HostId, region: 'local', slots: 10, used: 0, warm: 0, state: 'up', draining: false },
  ...{
    startedAt: new Date(0),
    incarnation: '',
    url: '',
    labels: {},
    version: '',
    secretMark: '',
    storeMark: '',
    clockMs: 0,
  },
  ...change,
});

const chooseHost = (
  hosts: readonly LivingHost[],
  region?: string,
  placedCounts = new Map<HostId, number>(),
): string | undefined => selectHost(hosts, { ownHost: OWN, placedCounts, ...(region === undefined ? {} : { region }) });

test('chooses the host with the lowest share of used slots', () => {
  assert.equal(chooseHost([host('a', { used: 5 }), host('b', { used: 6 }), host('c', { slots: 100, used: 40 })]), 'c');
});

test('counts sessions that were placed since the last read of the host usage', () => {
  assert.equal(
    chooseHost([host('a', { used: 1 }), host('b', { used: 2 })], undefined, new Map([['a' as HostId, 2]])),
    'b',
  );
});

test('prefers the host that received the request, then a host with a warm browser, if usage is equal', () => {
  assert.equal(chooseHost([host('a', { warm: 1 }), host('b')]), 'b');
  assert.equal(chooseHost([host('a'), host('c', { warm: 1 })]), 'c');
});

test('never chooses a host that is draining, is restarting or has no slots', () => {
  assert.equal(
    chooseHost([host('a', { draining: true }), host('b', { state: 'away' }), host('c', { slots: 0 })]),
    undefined,
  );
});

test('chooses a host in the requested region if the region has a host that takes sessions', () => {
  const farHost = host('c', { region: 'far', used: 9 });
  assert.equal(chooseHost([host('b'), farHost], 'far'), 'c');
  assert.equal(chooseHost([host('b'), { ...farHost, draining: true }], 'far'), 'b');
});

test('chooses a full host only if no host has room', () => {
  assert.equal(chooseHost([host('a', { used: 10 }), host('b', { slots: 1, used: 0 })]), 'b');
  assert.equal(chooseHost([host('a', { used: 12 }), host('c', { used: 10 })]), 'c');
});
