// The one transaction that places a session: the application's limits, then the host's slots, then the credit of the account,
// then the row itself. All are locked until it ends, so that concurrent creates are counted one after the other. What is counted is counted by
// a later statement than the one that took its lock, because a statement does not see what was committed while it waited for a lock.
import { sql } from 'kysely';
import type { ApplicationId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';
import { type Db, KEPT_PLAN } from '../database.ts';
import type { Shortage } from '../rows/credits.ts';
import type { IdempotencyRun } from '../rows/idempotency.ts';
import type { ApplicationUse, PlaceOptions } from '../rows/place.ts';
import type { NewSession, Placed } from '../rows/sessions.ts';
import { availableTo, holding } from './credit-ledger.ts';
import { isOf } from './idempotency.ts';
import { aheadOf, takeFromLine } from './line.ts';
import { writeRecorded } from './recorder.ts';
import { created } from './session-events.ts';

export async function place<Admitted, Refusal>(
  trx: Db,
  row: NewSession,
  options?: PlaceOptions<Admitted, Refusal>,
): Promise<Placed<Admitted, Refusal>> {
  const configured = options && (await lockLimits(trx, row.applicationId));
  const { slots, ahead, behind, ...counts } = await lockHost(trx, row, options);
  const decision = configured && options.decide({ configured, ...counts });
  if (decision && 'refused' in decision) return decision;
  if (behind) return { behind };
  const toInsert = { ...row, ...(decision ? { expiresAt: decision.admitted.expiresAt } : {}) };
  const asked = decision && options?.hold?.(decision.admitted.expiresAt);
  const values = columns(toInsert);
  const isHeld = asked ? sql`${holding({ ...asked, ...purposeOf(row) })} is null` : sql`true`;
  const hasRoom = sql`${usedOf(row)} < ${slots - ahead}::int`;
  const insert = trx
    .insertInto('sessions')
    .columns(namesOf(values))
    .expression(sql`select ${sql.join(Object.values(values))} where case when ${hasRoom} then ${isHeld} else false end`)
    .returningAll();
  const [placed] = await writeRecorded(trx, insert, created(toInsert));
  if (!placed) return whyNot(trx, row, { slots, ahead, required: asked?.amount ?? 0 });
  if (options?.run) await noteSession(trx, options.run, row);
  if (options?.line?.place !== undefined) await takeFromLine(trx, options.line.place);
  return { placed, ...decision };
}

/** The host is full, unless the account lacks credit. A session may have ended meanwhile. */
async function whyNot(
  trx: Db,
  row: NewSession,
  { slots, ahead, required }: Pick<Room, 'slots' | 'ahead'> & { readonly required: number },
): Promise<{ readonly full: { readonly slots: number; readonly used: number } } | { readonly short: Shortage }> {
  const used = (await countUsed(trx, row)) + ahead;
  const available = used < slots && required > 0 ? await availableTo(trx, row.applicationId) : required;
  return available < required ? { short: { required, available } } : { full: { slots, used: Math.min(slots, used) } };
}

const purposeOf = ({ id, applicationId, keyId }: NewSession) => ({
  ...{ applicationId, purposeKind: 'session' as const, purposeId: id },
  ...(keyId ? { keyId } : {}),
});

// ---- the application -----------------------------------------------------------------------------------------------

async function lockLimits(trx: Db, application: ApplicationId): Promise<JsonObject> {
  const { configured } = await trx
    .selectFrom('applicationLimits')
    .select('configured')
    .modifyFront(KEPT_PLAN)
    .where('applicationId', '=', application)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow();
  return configured;
}

interface Counts {
  readonly living: number;
  readonly created: number;
  readonly oldest: Date | null;
  readonly egressBytes: number;
}

const NO_COUNTS: Counts = { living: 0, created: 0, oldest: null, egressBytes: 0 };

/** Sessions that have not ended, sessions that were created after a time, and the bytes of the day. */
export async function countOf(db: Db, application: ApplicationId, since: Date, now: Date): Promise<Counts> {
  const { rows } = await sql<Counts>`select * from (${counting(application, since, now)}) as counts`.execute(db);
  return rows[0] ?? NO_COUNTS;
}

const counting = (application: ApplicationId, since: Date, now: Date) => sql`
  select
    (select count(*) from sessions
      where application_id = ${application} and status in ('PENDING', 'RUNNING')) as living,
    coalesce((select bytes from egress_days
      where application_id = ${application} and day = (${now}::timestamptz at time zone 'UTC')::date), 0) as egress_bytes,
    count(*) as created,
    min(created_at) as oldest
  from sessions
  where application_id = ${application} and created_at > ${since} and id >= ${firstIdOf(since)}`;

/** Ids begin with the time of their generation, so the index on ids finds the recent ones. */
function firstIdOf(time: Date): string {
  const hex = time.getTime().toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

// ---- the host, and the row -----------------------------------------------------------------------------------------

interface Room extends Omit<ApplicationUse, 'configured'> {
  /** 0 if the host takes no sessions. */
  readonly slots: number;
  /** Creates that wait for a slot and come first. */
  readonly ahead: number;
  readonly behind?: JsonObject;
}

/** Locks the host, and counts the sessions of the application, whose limits are locked already. */
async function lockHost<Admitted, Refusal>(
  trx: Db,
  { hostId, applicationId, createdAt }: NewSession,
  options: PlaceOptions<Admitted, Refusal> | undefined,
): Promise<Room> {
  const line = options?.line && aheadOf(applicationId, options.line);
  const counts = options && sql`, (${counting(applicationId, options.createdAfter, createdAt)}) as counts`;
  const { rows } = await sql<Partial<Counts> & Locked>`
    select ${KEPT_PLAN} slots, draining, state, ${line?.ahead ?? sql`0`} as ahead, ${line?.behind ?? sql`null::jsonb`} as behind
      ${counts ? sql`, counts.*` : sql``}
    from hosts ${counts ?? sql``}
    where hosts.id = ${hostId}
    for no key update of hosts`.execute(trx);
  const [host] = rows;
  if (!host) throw new Error(`there is no host ${hostId}`);
  const { slots, draining, state, ahead, behind, ...counted } = host;
  const { oldest, ...more } = { ...NO_COUNTS, ...counted };
  const takes = !draining && (state === 'up' || state === 'alone');
  return {
    ...more,
    ...(oldest ? { oldest } : {}),
    ...{ slots: takes ? slots : 0, ahead },
    ...(behind ? { behind } : {}),
  };
}

interface Locked {
  readonly slots: number;
  readonly draining: boolean;
  readonly state: string;
  readonly ahead: number;
  readonly behind: JsonObject | null;
}

const usedOf = ({ hostId }: NewSession) =>
  sql<number>`(select count(*) from sessions where host_id = ${hostId} and status in ('PENDING', 'RUNNING'))`;

async function countUsed(trx: Db, row: NewSession): Promise<number> {
  const { rows } = await sql<{ used: number }>`select ${usedOf(row)} as used`.execute(trx);
  return rows[0]?.used ?? 0;
}

/** After the commit a repeated request finds the session, even if this process dies before it answers. */
async function noteSession(trx: Db, run: IdempotencyRun, row: NewSession): Promise<void> {
  const noted = trx.updateTable('idempotency').set({ sessionId: row.id }).where(isOf(run)).returning('run');
  if ((await noted.execute()).length === 0) throw new Error('the idempotency key was taken over by another request');
}

/** In the order of `Object.values`. */
const namesOf = <Values extends object>(values: Values) => Object.keys(values) as Array<keyof Values>; // TypeScript widens the keys.

const columns = (row: NewSession) => ({
  id: row.id,
  applicationId: row.applicationId,
  hostId: row.hostId,
  keyId: row.keyId ?? null,
  status: 'PENDING' as const,
  region: row.region,
  keepAlive: row.keepAlive,
  userMetadata: JSON.stringify(row.userMetadata),
  settings: JSON.stringify(row.settings),
  createdAt: row.createdAt,
  updatedAt: row.createdAt,
  expiresAt: row.expiresAt,
  connectBy: row.connectBy ?? null,
  ...(row.createDigest ? { createDigest: row.createDigest, answer: 'owed' as const } : {}),
});
