// The one transaction that places a session: the application's limits, then the host's slots, then the credit of the account,
// then the row itself. All are locked until it ends, so that concurrent creates are counted one after the other.
import { sql } from 'kysely';
import type { ApplicationId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';
import { type Db, KEPT_PLAN } from '../database.ts';
import type { IdempotencyRun } from '../rows/idempotency.ts';
import type { Place } from '../rows/line.ts';
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
  const decision = options?.decide(await applicationUse(trx, row, options.createdAfter));
  if (decision && 'refused' in decision) return decision;
  const { behind, ...host } = await slotsOf(trx, row, options?.line);
  if (behind) return { behind };
  if (host.used >= host.slots) return { full: host };
  const toInsert = { ...row, ...(decision ? { expiresAt: decision.admitted.expiresAt } : {}) };
  const asked = decision && options?.hold?.(decision.admitted.expiresAt);
  const values = columns(toInsert);
  const isHeld = asked ? sql`where ${holding({ ...asked, ...purposeOf(row) })} is null` : sql``;
  const insert = trx
    .insertInto('sessions')
    .columns(namesOf(values))
    .expression(sql`select ${sql.join(Object.values(values))} ${isHeld}`)
    .returningAll();
  const [placed] = await writeRecorded(trx, insert, created(toInsert));
  if (!placed && asked)
    return { short: { required: asked.amount, available: await availableTo(trx, row.applicationId) } };
  if (!placed) throw new Error('an insert returned no row');
  if (options?.run) await noteSession(trx, options.run, row);
  if (options?.line?.place !== undefined) await takeFromLine(trx, options.line.place);
  return { placed, ...decision };
}

const purposeOf = ({ id, applicationId, keyId }: NewSession) => ({
  ...{ applicationId, purposeKind: 'session' as const, purposeId: id },
  ...(keyId ? { keyId } : {}),
});

// ---- the application -----------------------------------------------------------------------------------------------

async function applicationUse(
  trx: Db,
  { applicationId: application, createdAt }: NewSession,
  createdAfter: Date,
): Promise<ApplicationUse> {
  const { configured } = await trx
    .selectFrom('applicationLimits')
    .select('configured')
    .modifyFront(KEPT_PLAN)
    .where('applicationId', '=', application)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow();
  const { oldest, ...counts } = await countOf(trx, application, createdAfter, createdAt);
  return { configured, ...counts, ...(oldest ? { oldest } : {}) };
}

interface Counts {
  readonly living: number;
  readonly created: number;
  readonly oldest: Date | null;
  readonly egressBytes: number;
}

/** Sessions that have not ended, sessions that were created after a time, and the bytes of the day. */
export async function countOf(db: Db, application: ApplicationId, since: Date, now: Date): Promise<Counts> {
  const { rows } = await sql<Counts>`
    select ${KEPT_PLAN}
      (select count(*) from sessions
        where application_id = ${application} and status in ('PENDING', 'RUNNING')) as living,
      coalesce((select bytes from egress_days
        where application_id = ${application} and day = (${now}::timestamptz at time zone 'UTC')::date), 0) as egress_bytes,
      count(*) as created,
      min(created_at) as oldest
    from sessions
    where application_id = ${application} and created_at > ${since} and id >= ${firstIdOf(since)}`.execute(db);
  const counts = rows[0];
  if (!counts) throw new Error('a count without a row');
  return counts;
}

/** Ids begin with the time of their generation, so the index on ids finds the recent ones. */
function firstIdOf(time: Date): string {
  const hex = time.getTime().toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

// ---- the host, and the row -----------------------------------------------------------------------------------------

interface Room {
  readonly slots: number;
  /** With those that wait for a slot and come first. */
  readonly used: number;
  readonly behind?: JsonObject;
}

async function slotsOf(trx: Db, row: NewSession, at: Partial<Place> | undefined): Promise<Room> {
  const line = at && aheadOf(row.applicationId, at);
  const { slots, draining, state, ahead, behind } = await trx
    .selectFrom('hosts')
    .select(['slots', 'draining', 'state'])
    .modifyFront(KEPT_PLAN)
    .select((line?.ahead ?? sql<number>`0`).as('ahead'))
    .select((line?.behind ?? sql<null>`null`).as('behind'))
    .where('id', '=', row.hostId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow();
  const { used } = await trx
    .selectFrom('sessions')
    .select(({ fn }) => fn.countAll<number>().as('used'))
    .modifyFront(KEPT_PLAN)
    .where('hostId', '=', row.hostId)
    .where(sql<boolean>`status in ('PENDING', 'RUNNING')`)
    .executeTakeFirstOrThrow();
  if (draining || !(state === 'up' || state === 'alone')) return { slots: 0, used };
  return { slots, used: Math.min(slots, used + ahead), ...(behind ? { behind } : {}) };
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
