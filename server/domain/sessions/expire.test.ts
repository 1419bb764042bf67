import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionEnd, SessionRow } from '../../engines/store/rows/sessions.ts';
import type { ApplicationId, HostId, SessionId } from '../../kit/ids.ts';
import { dueEndOf, type ExpireParts, expireSessions, isNothingDueBefore } from './expire.ts';

const NOW = new Date('2026-11-20T12:00:00.000Z');
const BEFORE_NOW = new Date('2026-11-20T11:59:59.000Z');
const AFTER_NOW = new Date('2026-11-20T12:00:01.000Z');

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
  createdAt: BEFORE_NOW,
  updatedAt: BEFORE_NOW,
  expiresAt: AFTER_NOW,
  attached: false,
  ...changes,
});

const CASES: Array<[string, Partial<SessionRow>, number, string | undefined]> = [
  ['does not end a session for which nothing is due', {}, 0, undefined],
  ['ends a session at its time limit', { expiresAt: NOW }, 0, 'timed_out'],
  ['ends a session after its time limit although a client is attached', { expiresAt: BEFORE_NOW }, 1, 'timed_out'],
  ['ends a session to which no client connected in time', { connectBy: NOW }, 0, 'connect_timeout'],
  ['does not end a session to which a client has just connected', { connectBy: BEFORE_NOW }, 1, undefined],
  ['ends a session to which no client returned in time', { releaseAt: BEFORE_NOW }, 0, 'client_disconnected'],
  ['does not end a session to which a client has just returned', { releaseAt: BEFORE_NOW }, 1, undefined],
  ['does not end a session during its grace period', { releaseAt: AFTER_NOW }, 0, undefined],
  [
    'reports the time limit for a session that is also past its grace period',
    { expiresAt: BEFORE_NOW, releaseAt: BEFORE_NOW },
    0,
    'timed_out',
  ],
];

for (const [name, changes, clients, expected] of CASES)
  test(name, () => {
    assert.equal(dueEndOf(row(changes), NOW, clients)?.reason, expected);
  });

interface SessionState {
  readonly dueAt?: Date;
  readonly hasUnwrittenChange?: boolean;
}

function isNothingDue(sessions: readonly SessionState[], hasUnwrittenEnds = false): boolean {
  const all = sessions.map(({ dueAt = AFTER_NOW, hasUnwrittenChange = false }) => ({
    dueAt,
    presence: { hasUnwrittenChange },
  }));
  return isNothingDueBefore(AFTER_NOW, {
    liveSessions: { all },
    endings: { hasUnwrittenEnds },
  } as unknown as ExpireParts);
}

test('nothing is due if every session ends later and no write is pending', () => {
  assert.equal(isNothingDue([]), true);
  assert.equal(isNothingDue([{}, {}]), true);
});

test('something is due if a session ends before the given time, or a change or an end could not be written', () => {
  assert.equal(isNothingDue([{}, { dueAt: NOW }]), false);
  assert.equal(isNothingDue([{}, { hasUnwrittenChange: true }]), false);
  assert.equal(isNothingDue([{}], true), false);
});

test('ends the sessions that are due or whose end was decided, even if other ends cannot be written, and skips ends that are already pending', async () => {
  const endedIds: string[] = [];
  const end = async (id: string): Promise<void> => {
    if (id === 'failing') throw new Error('the end cannot be written');
    endedIds.push(id);
  };
  const isUnwritten = (id: string): boolean => id === 'owed';
  const due = async () => [
    ...['owed', 'failing', 'due'].map(id => row({ id: id as SessionId, expiresAt: BEFORE_NOW })),
    row({ id: 'decided' as SessionId, expiresAt: AFTER_NOW, end: { status: 'ERROR', reason: 'of_another_version' } }),
  ];
  const complete = async (id: string, { reason }: SessionEnd): Promise<void> => void endedIds.push(`${id}: ${reason}`);
  const parts = {
    ...{ host: 'h', clock: { now: () => NOW }, rows: { due } },
    liveSessions: { all: [], get: () => undefined },
    endings: { settle: async () => 0, isUnwritten, end, complete },
  };
  assert.deepEqual(await expireSessions(parts as unknown as ExpireParts), { ended: 2 });
  assert.deepEqual(endedIds, ['due', 'decided: of_another_version']);
});
