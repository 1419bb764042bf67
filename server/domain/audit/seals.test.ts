import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { AuditRow, SealRow } from '../../engines/store/rows/audit.ts';
import { newSigningKey, sign, verify } from '../../engines/vault/signing.ts';
import { systemClock } from '../../kit/clock.ts';
import { type ApplicationId, type AuditId, newId } from '../../kit/ids.ts';
import { silentLog } from '../../kit/log.ts';
import { SealHeads } from './seal-heads.ts';
import { Sealer } from './sealer.ts';
import { verifyAudit } from './verify.ts';

const DAY_MS = 24 * 3600_000;
const CHAIN = '01a1fa50-5319-7450-a6b3-c787ada50631';
const folder = mkdtempSync(join(tmpdir(), 'berth-seals-'));
after(() => rmSync(folder, { recursive: true }));
let logCount = 0;

/** Creates an audit log with one chain, stored in arrays, and its signing keys. The newest key is active. */
async function createAuditLog() {
  const entries: AuditRow[] = [];
  const seals: SealRow[] = [];
  const time = { now: new Date('2026-01-01T00:00:00.000Z') };
  const clock = { ...systemClock, now: () => time.now };
  const signers = [await newSigningKey()];
  const heads = new SealHeads(mkdtempSync(join(folder, `${logCount++}-`)));
  const keys = {
    sign: (typ: string, payload: Uint8Array) => sign(signers.at(-1) ?? assert.fail(), typ, payload),
    verify: (jws: string, typ: string) => verify(jws, typ, new Map(signers.map(({ kid, jwk }) => [kid, jwk]))),
  };
  const store = {
    audit: {
      chains: async () => [CHAIN],
      unsealedChains: async () => ((entries.at(-1)?.number ?? 0) > (seals.at(-1)?.lastNumber ?? 0) ? [CHAIN] : []),
      entriesAfter: async (_: string, number: number, limit: number) =>
        entries.filter(row => row.number > number).slice(0, limit),
      sealsAfter: async (_: string, number: number, limit: number) =>
        seals.filter(row => row.number > number).slice(0, limit),
      lastSeal: async () => seals.at(-1),
      insertSeal: async (row: SealRow) => seals.push(row) > 0,
    },
  };
  const sealer = new Sealer({ store, keys, heads, clock, log: silentLog });
  const add = (times: number): void => {
    for (let addedCount = 0; addedCount < times; addedCount += 1)
      entries.push({
        ...{
          id: newId<AuditId>(time.now),
          applicationId: CHAIN as ApplicationId,
          number: (entries.at(-1)?.number ?? 0) + 1,
        },
        ...{ at: time.now, action: 'agent_key.created', actor: { kind: 'operator' }, outcome: 'success', details: {} },
      });
  };
  const verifyLog = async () => {
    const { problems, ...counts } = await verifyAudit({ store, keys, heads, clock });
    return problems[0] ? `${problems[0].what} ${problems[0].number} ${problems[0].how}` : counts;
  };
  return { entries, seals, time, signers, heads, sealer, add, verdict: verifyLog };
}

test('creates several seals for many entries, and seals only new entries', async () => {
  const { add, sealer, verdict, seals } = await createAuditLog();
  assert.deepEqual(await sealer.seal(), { sealed: 0 });
  add(2500);
  assert.deepEqual(await verdict(), { chains: 1, seals: 0, entries: 2500, unsealed: 2500 });
  assert.deepEqual(await sealer.seal(), { sealed: 2500 });
  assert.deepEqual(
    seals.map(({ firstNumber, lastNumber }) => [firstNumber, lastNumber]),
    [
      [1, 1000],
      [1001, 2000],
      [2001, 2500],
    ],
  );
  assert.deepEqual(await sealer.seal(), { sealed: 0 });
  add(1);
  assert.deepEqual(await verdict(), { chains: 1, seals: 3, entries: 2501, unsealed: 1 });
});

test('verifies the audit log after a rotation of the signing key, but reports a changed seal if the old key has been removed', async () => {
  const { add, sealer, verdict, signers } = await createAuditLog();
  add(1);
  await sealer.seal();
  signers.push(await newSigningKey());
  add(1);
  await sealer.seal();
  assert.deepEqual(await verdict(), { chains: 1, seals: 2, entries: 2, unsealed: 0 });
  signers.shift();
  assert.equal(await verdict(), 'seal 1 changed');
});

test('verifies the audit log if only entries older than 400 days were removed', async () => {
  const log = await createAuditLog();
  for (let day = 0; day < 4; day += 1) {
    log.add(2);
    await log.sealer.seal();
    log.time.now = new Date(log.time.now.getTime() + 100 * DAY_MS);
  }
  // The seals are now 400, 300, 200 and 100 days old.
  log.time.now = new Date(log.time.now.getTime() + 101 * DAY_MS);
  const [firstSeal] = log.seals.splice(0, 1);
  const removedEntries = log.entries.splice(0, 4);
  assert.ok(firstSeal);
  assert.deepEqual(await log.verdict(), { chains: 1, seals: 3, entries: 4, unsealed: 0 });
  const [secondSeal] = log.seals.splice(0, 1);
  assert.ok(secondSeal);
  assert.equal(await log.verdict(), 'seal 1 missing', 'what comes first now is too young to do so');
  log.seals.unshift(firstSeal, secondSeal);
  log.entries.unshift(...removedEntries);
  log.entries.splice(4, 1);
  assert.equal(await log.verdict(), 'entry 5 missing');
});

test('does not update the audit-heads file while a seal is missing', async () => {
  const { add, sealer, verdict, seals, heads } = await createAuditLog();
  for (let round = 0; round < 3; round += 1) {
    add(1);
    await sealer.seal();
  }
  const storedHeads = await heads.read();
  assert.equal(storedHeads.get(CHAIN)?.number, 3);
  seals.pop();
  assert.equal(await verdict(), 'seal 3 missing');
  add(1);
  await sealer.seal();
  add(1);
  await sealer.seal();
  assert.equal(await verdict(), 'seal 3 changed');
  assert.deepEqual(await heads.read(), storedHeads);
});

test('creates the audit-heads file with mode 600, and ignores its invalid lines', async () => {
  const headsFolder = mkdtempSync(join(folder, 'damaged-'));
  const heads = new SealHeads(headsFolder);
  const head = { number: 7, digest: `sha256:${'a'.repeat(64)}` };
  await heads.advance(new Map([[CHAIN, head]]));
  await heads.advance(new Map([['nonsense', head]]));
  assert.deepEqual(await heads.read(), new Map([[CHAIN, head]]));
  assert.equal(statSync(join(headsFolder, 'audit-heads')).mode & 0o777, 0o600);
  assert.ok(readFileSync(join(headsFolder, 'audit-heads'), 'utf8').endsWith('\n'));
});
