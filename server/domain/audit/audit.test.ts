import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NewAuditRow } from '../../engines/store/rows/audit.ts';
import { systemClock } from '../../kit/clock.ts';
import { isUuid } from '../../kit/ids.ts';
import { Audit, type AuditEvent } from './audit.ts';

async function recordEntry(event: Partial<AuditEvent>): Promise<NewAuditRow> {
  const rows: NewAuditRow[] = [];
  const applicationEvents = { append: async () => {} };
  const audit = new Audit({ audit: { insert: async row => void rows.push(row) }, applicationEvents }, systemClock);
  await audit.record({ action: 'token.created', actor: { kind: 'operator' }, outcome: 'success', ...event });
  return rows[0] ?? assert.fail('nothing was written');
}

test('an entry has an id and a time, and omits absent values', async () => {
  const { id, at, ...rest } = await recordEntry({});
  assert.ok(isUuid(id));
  assert.ok(at instanceof Date);
  assert.deepEqual(rest, { action: 'token.created', actor: { kind: 'operator' }, outcome: 'success', details: {} });
});

test('removes credentials from every field of an entry', async () => {
  const key = `bak_${'x'.repeat(43)}abc123`;
  const row = await recordEntry({
    ...{ ip: key, userAgent: `curl ${key}`, requestId: key },
    actor: { kind: 'anonymous', name: key },
    target: { kind: 'token', id: key },
    details: { [key]: 1, text: `a ${key} b`, list: [key] },
  });
  assert.ok(!JSON.stringify(row).includes('xxx'), JSON.stringify(row));
});

test('limits the length of strings, lists and details, and replaces control characters', async () => {
  const manyDetails = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`n${index}`, index]));
  const { details, userAgent } = await recordEntry({
    userAgent: `a\u0000b\n${'😀'.repeat(1000)}`,
    details: { list: Array.from({ length: 100 }, () => 'y'.repeat(1000)), ...manyDetails, last: Number.NaN },
  });
  assert.ok(JSON.stringify(details).length < 8192);
  assert.ok(userAgent?.startsWith('a b ') && userAgent.length <= 200 && userAgent.isWellFormed());
});
