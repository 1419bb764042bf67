import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../kit/clock.ts';
import type { ApplicationId, KeyId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { AddressRefusals } from './address-refusals.ts';
import type { AuditEvent } from './audit.ts';

test('records a refused key once a minute, and no other key less', async () => {
  const events: AuditEvent[] = [];
  const time = { ms: 0 };
  const clock = { ...systemClock, monotonicMs: () => time.ms };
  const refusals = new AddressRefusals({
    audit: { record: async event => void events.push(event) },
    clock,
    log: silentLog,
  });
  const refuse = (id: string): void =>
    refusals.refused({ applicationId: 'app' as ApplicationId, keyId: id as KeyId }, { ip: '::1' });
  for (const id of ['one', 'one', 'other', 'one']) refuse(id);
  assert.deepEqual(
    events.map(({ target }) => target?.id),
    ['one', 'other'],
  );
  assert.equal(events[0]?.ip, '::1');
  time.ms = 59_999;
  refuse('one');
  assert.equal(events.length, 2);
  time.ms = 60_000;
  refuse('one');
  assert.equal(events.length, 3);
});

test('a failure to record does not reach the caller', async () => {
  const audit = { record: () => Promise.reject(new Error('no database')) };
  const refusals = new AddressRefusals({ audit, clock: systemClock, log: silentLog });
  refusals.refused({ applicationId: 'app' as ApplicationId, keyId: 'one' as KeyId }, { ip: '::1' });
});
