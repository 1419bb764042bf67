// A process that acts as one host in the placement benchmark. At the request of its parent, it places sessions for many
// applications as every create does. As the baseline, it inserts single rows that have only default values. It reports
// the time of each round.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { termsOf } from '../server/domain/limits/admission.ts';
import { configuredLimits, effectiveLimits } from '../server/domain/limits/browser-limits.ts';
import { openStore } from '../server/engines/store/open-store.ts';
import type { NewSession } from '../server/engines/store/rows/sessions.ts';
import { addMs, systemClock } from '../server/kit/clock.ts';
import {
  type AccountId,
  type ApplicationId,
  type HostId,
  type KeyId,
  newId,
  type SessionId,
} from '../server/kit/ids.ts';
import { silentLog } from '../server/kit/log.ts';
import { Secret } from '../server/kit/secret.ts';

/** The number of concurrent creates per host. */
const CONCURRENT_CREATES = 4;
const APPLICATIONS = 40;
const LIMITS = { browsers: { maxConcurrent: 100, maxCreatesPerMinute: 100_000 } };

export interface Round {
  readonly kind: 'place' | 'bare';
  readonly count: number;
}

const [url = '', dataDir = ''] = process.argv.slice(2);
const store = await openStore({ databaseUrl: new Secret(url), dataDir, log: silentLog, clock: systemClock });
const hostId = newId<HostId>(systemClock.now());
await store.hosts.announce({ id: hostId, region: 'local', slots: 1000, startedAt: systemClock.now() });
const callers: Array<Pick<NewSession, 'applicationId' | 'keyId'>> = [];
while (callers.length < APPLICATIONS) callers.push(await createCaller());
const bareRowPool = new pg.Pool({ connectionString: url, max: CONCURRENT_CREATES });

async function createCaller(): Promise<Pick<NewSession, 'applicationId' | 'keyId'>> {
  const now = systemClock.now();
  const account = { id: newId<AccountId>(now), name: 'Bench', createdAt: now };
  await store.accounts.insert(account);
  const id = newId<ApplicationId>(now);
  const row = { id, name: 'Bench', slug: `b-${id}`, billingAccountId: account.id, revision: 1 };
  await store.applications.insert({ ...row, createdAt: now, updatedAt: now }, account.id, 50);
  await store.limits.replace(id, 1, LIMITS, now);
  const key = {
    id: newId<KeyId>(now),
    applicationId: id,
    name: 'Bench',
    prefix: 'bak_',
    hash: randomBytes(32),
    revision: 1,
  };
  await store.keys.insert({ ...key, grants: [], scopes: [], cidrAllow: [], createdAt: now }, 1);
  return { applicationId: id, keyId: key.id };
}

async function placeSession(nth: number): Promise<void> {
  const createdAt = systemClock.now();
  const caller = callers[nth % APPLICATIONS];
  assert.ok(caller);
  const row = {
    ...{ id: newId<SessionId>(createdAt), ...caller, hostId, region: 'local', keepAlive: false },
    ...{ userMetadata: {}, settings: {}, createdAt, expiresAt: addMs(createdAt, 300_000) },
  };
  const placement = await store.sessions.place(row, {
    createdAfter: addMs(createdAt, -60_000),
    terms: configured => termsOf(effectiveLimits(configuredLimits(configured), {}), { createdAt }),
    line: {},
  });
  assert.ok('placed' in placement);
}

const insertBareRow = async (): Promise<void> =>
  void (await bareRowPool.query('insert into bench_bare default values'));

async function runRound({ kind, count }: Round): Promise<number> {
  let startedCount = 0;
  const runLane = async (): Promise<void> => {
    while (startedCount < count) {
      const nth = startedCount++;
      await (kind === 'place' ? placeSession(nth) : insertBareRow());
    }
  };
  const startMs = systemClock.monotonicMs();
  await Promise.all(Array.from({ length: CONCURRENT_CREATES }, runLane));
  return systemClock.monotonicMs() - startMs;
}

process.on('message', (round: Round) => {
  runRound(round).then(
    ms => process.send?.({ ms }),
    error => process.send?.({ error: String(error) }),
  );
});
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });
