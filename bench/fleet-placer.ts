// One host of the bench of placements, as a process: places sessions of many applications by the transaction that every create uses, or
// commits one bare row each as the baseline, on the parent's word. Told rounds have the time of the round.
import assert from 'node:assert/strict';
import pg from 'pg';
import { decideAdmission } from '../server/domain/limits/admission.ts';
import { configuredLimits, effectiveLimits } from '../server/domain/limits/browser-limits.ts';
import { openStore } from '../server/engines/store/open-store.ts';
import { plus, systemClock } from '../server/kit/clock.ts';
import { type AccountId, type ApplicationId, type HostId, newId, type SessionId } from '../server/kit/ids.ts';
import { silentLog } from '../server/kit/log.ts';
import { Secret } from '../server/kit/secret.ts';

/** Creates of one host that are under way at once. */
const AT_ONCE = 4;
const APPLICATIONS = 40;
const LIMITS = { browsers: { maxConcurrent: 100, maxCreatesPerMinute: 100_000 } };

export interface Round {
  readonly kind: 'place' | 'bare';
  readonly count: number;
}

const [url = '', dataDir = ''] = process.argv.slice(2);
const store = await openStore({ databaseUrl: new Secret(url), dataDir, log: silentLog, clock: systemClock });
const host = newId<HostId>(systemClock.now());
await store.hosts.announce({ id: host, region: 'local', slots: 1000, startedAt: systemClock.now() });
const applications: ApplicationId[] = [];
while (applications.length < APPLICATIONS) applications.push(await anApplication());
const bare = new pg.Pool({ connectionString: url, max: AT_ONCE });

async function anApplication(): Promise<ApplicationId> {
  const now = systemClock.now();
  const account = { id: newId<AccountId>(now), name: 'Bench', createdAt: now };
  await store.accounts.insert(account);
  const id = newId<ApplicationId>(now);
  const row = { id, name: 'Bench', slug: `b-${id}`, billingAccountId: account.id, revision: 1 };
  await store.applications.insert({ ...row, createdAt: now, updatedAt: now }, account.id, 50);
  await store.limits.replace(id, 1, LIMITS, now);
  return id;
}

async function place(nth: number): Promise<void> {
  const createdAt = systemClock.now();
  const applicationId = applications[nth % APPLICATIONS];
  assert.ok(applicationId);
  const row = {
    ...{ id: newId<SessionId>(createdAt), applicationId, hostId: host, region: 'local', keepAlive: false },
    ...{ userMetadata: {}, settings: {}, createdAt, expiresAt: plus(createdAt, 300_000) },
  };
  const placed = await store.sessions.place(row, {
    createdAfter: plus(createdAt, -60_000),
    decide: use => decideAdmission(effectiveLimits(configuredLimits(use.configured), {}), use, { createdAt }),
  });
  assert.ok('placed' in placed);
}

const commit = async (): Promise<void> => void (await bare.query('insert into bench_bare default values'));

async function run({ kind, count }: Round): Promise<number> {
  let begun = 0;
  const lane = async (): Promise<void> => {
    while (begun < count) await (kind === 'place' ? place(begun++) : commit().finally(() => (begun += 1)));
  };
  const from = systemClock.monotonicMs();
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return systemClock.monotonicMs() - from;
}

process.on('message', (round: Round) => {
  run(round).then(
    ms => process.send?.({ ms }),
    error => process.send?.({ error: String(error) }),
  );
});
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });
