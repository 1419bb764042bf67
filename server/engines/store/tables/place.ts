// The one transaction that admits a session: the application's limits, then the host's slots, then the row itself. The
// rows that are locked are queues: whoever holds one counts, and the next one counts what it left.
import { sql } from 'kysely';
import { plus } from '../../../kit/clock.ts';
import type { ApplicationId } from '../../../kit/ids.ts';
import type { Db } from '../database.ts';
import type { Admission, Placed, Seats } from '../rows/admission.ts';
import type { IdempotencyRun } from '../rows/idempotency.ts';
import type { NewSession } from '../rows/sessions.ts';
import { isOf } from './idempotency.ts';
import { writeRecorded } from './recorder.ts';
import { created } from './session-events.ts';

const WINDOW_MS = 60_000;

export async function place(trx: Db, row: NewSession, admission?: Admission): Promise<Placed> {
  const admitted = admission && (await seatsFor(trx, row, admission));
  const refused = admitted && spent(admitted.seats);
  if (refused) return { refused, seats: admitted.seats };
  const host = await slotsOf(trx, row);
  if (host.used >= host.slots) return { full: host };
  const values = { ...columns(row), ...(admitted ? { expiresAt: admitted.expiresAt } : {}) };
  const insert = trx.insertInto('sessions').values(values).returningAll();
  const [placed] = await writeRecorded(trx, insert, created({ ...row, expiresAt: values.expiresAt }));
  if (!placed) throw new Error('an insert returned no row');
  if (admission?.run) await tell(trx, admission.run, row);
  return { placed, ...(admitted ? { seats: withOneMore(admitted.seats, row) } : {}) };
}

// ---- the application -----------------------------------------------------------------------------------------------

async function seatsFor(
  trx: Db,
  row: NewSession,
  admission: Admission,
): Promise<{ readonly seats: Seats; readonly expiresAt: Date }> {
  const { configured } = await trx
    .selectFrom('applicationLimits')
    .select('configured')
    .where('applicationId', '=', row.applicationId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow();
  const { maxConcurrent, maxCreatesPerMinute, lifeMs } = admission.terms(configured);
  const { living, created, oldest } = await countOf(trx, row.applicationId, plus(row.createdAt, -WINDOW_MS));
  const seats: Seats = {
    concurrent: { limit: maxConcurrent, used: living },
    minute: { limit: maxCreatesPerMinute, used: created, ...(oldest ? { oldest } : {}) },
  };
  return { seats, expiresAt: plus(row.createdAt, lifeMs) };
}

function spent({ concurrent, minute }: Seats): 'concurrent' | 'minute' | undefined {
  if (concurrent.used >= concurrent.limit) return 'concurrent';
  return minute.used >= minute.limit ? 'minute' : undefined;
}

const withOneMore = ({ concurrent, minute }: Seats, { createdAt }: NewSession): Seats => ({
  concurrent: { ...concurrent, used: concurrent.used + 1 },
  minute: { oldest: createdAt, ...minute, used: minute.used + 1 },
});

interface Counts {
  readonly living: number;
  readonly created: number;
  readonly oldest: Date | null;
}

/** Non-terminal sessions, and those created since. */
export async function countOf(db: Db, application: ApplicationId, since: Date): Promise<Counts> {
  const { rows } = await sql<Counts>`
    select
      (select count(*) from sessions
        where application_id = ${application} and status in ('PENDING', 'RUNNING')) as living,
      count(*) as created,
      min(created_at) as oldest
    from sessions
    where application_id = ${application} and created_at > ${since} and id >= ${firstIdOf(since)}`.execute(db);
  const counts = rows[0];
  if (!counts) throw new Error('a count without a row');
  return counts;
}

/** Ids sort by the time they were made at, so the index on ids finds the recent ones. */
function firstIdOf(time: Date): string {
  const hex = time.getTime().toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

// ---- the host, and the row -----------------------------------------------------------------------------------------

async function slotsOf(trx: Db, row: NewSession): Promise<{ slots: number; used: number }> {
  const { slots } = await trx
    .selectFrom('hosts')
    .select('slots')
    .where('id', '=', row.hostId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow();
  const { used } = await trx
    .selectFrom('sessions')
    .select(({ fn }) => fn.countAll<number>().as('used'))
    .where('hostId', '=', row.hostId)
    .where('status', 'in', ['PENDING', 'RUNNING'])
    .executeTakeFirstOrThrow();
  return { slots, used };
}

/** From here on a repetition finds the session, even if we die in the next line. */
async function tell(trx: Db, run: IdempotencyRun, row: NewSession): Promise<void> {
  const told = trx.updateTable('idempotency').set({ sessionId: row.id }).where(isOf(run)).returning('run');
  if ((await told.execute()).length === 0) throw new Error('the key of this write was taken over meanwhile');
}

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
