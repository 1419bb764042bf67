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
  ['does not end a session for which nothing is due', {}, 0, undefined],
  ['ends a session at its time limit', { expiresAt: NOW }, 0, 'timed_out'],
  ['ends a session after its time limit although a client is attached', { expiresAt: BEFORE }, 1, 'timed_out'],
  ['ends a session to which no client connected in time', { connectBy: NOW }, 0, 'connect_timeout'],
  ['does not end a session to which a client has just connected', { connectBy: BEFORE }, 1, undefined],
  ['ends a session to which no client returned in time', { releaseAt: BEFORE }, 0, 'client_disconnected'],
  ['does not end a session to which a client has just returned', { releaseAt: BEFORE }, 1, undefined],
  ['does not end a session during its grace period', { releaseAt: AFTER }, 0, undefined],
  [
    'completes an end that was decided but not completed',
    { end: { status: 'ERROR', reason: 'crashed' } },
    1,
    'crashed',
  ],
  [
    'reports the time limit for a session that is also past its grace period',
    { expiresAt: BEFORE, releaseAt: BEFORE },
    0,
    'timed_out',
  ],
];

for (const [name, changes, clients, expected] of CASES)
  test(name, () => {
    assert.equal(endOf(row(changes), NOW, clients)?.reason, expected);
  });
