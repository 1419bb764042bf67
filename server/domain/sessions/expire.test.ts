import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionRow } from '../../engines/store/rows/sessions.ts';
import type { ApplicationId, HostId, SessionId } from '../../kit/ids.ts';
import { endOf } from './expire.ts';

const NOW = new Date('2026-11-20T12:00:00.000Z');
const BEFORE = new Date('2026-11-20T11:59:59.000Z');
const AFTER = new Date('2026-11-20T12:00:01.000Z');

const row = (changes: Partial<SessionRow>): SessionRow => ({
  id: 's' as SessionId,
  applicationId: 'a' as ApplicationId,
  hostId: 'h' as HostId,
  status: 'RUNNING',
  region: 'local',
  keepAlive: false,
  userMetadata: {},
  settings: {},
  proxyBytes: 0,
  egressBytes: 0,
  createdAt: BEFORE,
  updatedAt: BEFORE,
  expiresAt: AFTER,
  attached: false,
  ...changes,
});

const CASES: Array<[string, Partial<SessionRow>, number, string | undefined]> = [
  ['nothing is due', {}, 0, undefined],
  ['its time is up', { expiresAt: NOW }, 0, 'timed_out'],
  ['its time is up although a client is attached', { expiresAt: BEFORE }, 1, 'timed_out'],
  ['nobody came', { connectBy: NOW }, 0, 'connect_timeout'],
  ['somebody came a moment ago', { connectBy: BEFORE }, 1, undefined],
  ['nobody came back', { releaseAt: BEFORE }, 0, 'client_disconnected'],
  ['somebody came back a moment ago', { releaseAt: BEFORE }, 1, undefined],
  ['the grace still runs', { releaseAt: AFTER }, 0, undefined],
  ['an end was decided and not finished', { end: { status: 'ERROR', reason: 'crashed' } }, 1, 'crashed'],
  ['both limits passed: the harder one', { expiresAt: BEFORE, releaseAt: BEFORE }, 0, 'timed_out'],
];

for (const [name, changes, clients, expected] of CASES)
  test(name, () => {
    assert.equal(endOf(row(changes), NOW, clients)?.reason, expected);
  });
