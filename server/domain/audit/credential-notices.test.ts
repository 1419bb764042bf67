import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { systemClock } from '../../kit/clock.ts';
import type { AccountId, ApplicationId, KeyId, TokenId } from '../../kit/ids.ts';
import { type Log, silentLog } from '../../kit/log.ts';
import type { AuditEvent } from './audit.ts';
import { CredentialNotices } from './credential-notices.ts';

test('records the refusal of a key at most once a minute, separately for each key', async () => {
  const events: AuditEvent[] = [];
  const time = { ms: 0 };
  const clock = { ...systemClock, monotonicMs: () => time.ms };
  const notices = new CredentialNotices({
    audit: { record: async event => void events.push(event) },
    clock,
    log: silentLog,
  });
  const recordRefusal = (id: string): void =>
    notices.recordRefusedAddress({ applicationId: 'app' as ApplicationId, keyId: id as KeyId }, { ip: '::1' });
  for (const id of ['one', 'one', 'other', 'one']) recordRefusal(id);
  assert.deepEqual(
    events.map(({ target }) => target?.id),
    ['one', 'other'],
  );
  assert.equal(events[0]?.ip, '::1');
  time.ms = 59_999;
  recordRefusal('one');
  assert.equal(events.length, 2);
  time.ms = 60_000;
  recordRefusal('one');
  assert.equal(events.length, 3);
});

test('logs why an audit entry could not be written, and does not throw', async () => {
  const warnings: unknown[] = [];
  const log: Log = { ...silentLog, warn: (event, fields) => void warnings.push([event, fields]) };
  const audit = { record: () => Promise.reject(new Error('no database')) };
  const notices = new CredentialNotices({ audit, clock: systemClock, log });
  notices.recordRefusedAddress({ applicationId: 'app' as ApplicationId, keyId: 'one' as KeyId }, { ip: '::1' });
  // An unhandled rejection fails the test before this promise resolves.
  await setImmediate();
  assert.deepEqual(warnings, [['audit.not_recorded', { reason: 'no database' }]]);
});

test('records the first use of a token', async () => {
  const events: AuditEvent[] = [];
  const audit = { record: async (event: AuditEvent) => void events.push(event) };
  const notices = new CredentialNotices({ audit, clock: systemClock, log: silentLog });
  const token = { kind: 'personal_token', id: 'one' as TokenId } as const;
  notices.recordFirstUse('ada' as AccountId, token, { ip: '::1' });
  assert.deepEqual(events, [
    {
      ...{ action: 'token.used_first', outcome: 'success', accountId: 'ada', ip: '::1' },
      ...{ actor: { kind: 'account', id: 'ada' }, via: token, target: { kind: 'token', id: 'one' } },
    },
  ]);
});
