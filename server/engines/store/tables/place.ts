// Places a session with one statement, which calls the function `place_session` of migration 0053. The function locks
// the application's limits, then the host, counts the sessions, holds credit of the account, and inserts the row with
// its event. The locks are held until the commit, so that concurrent creates are counted one after the other. This file
// reads the limits first. The domain interprets them and returns the number that each count must be below. The function
// changes nothing if the limits have been replaced since they were read.
import { CompiledQuery, sql } from 'kysely';
import { addMs } from '../../../kit/clock.ts';
import { type ApplicationId, type CreditEntryId, firstIdAt, newId, type SessionId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';
import { type Db, KEPT_PLAN, KEPT_PLAN_MARK } from '../database.ts';
import type { ApplicationUse, Counts, Hold, PlacementTerms, PlaceOptions } from '../rows/place.ts';
import type { NewSession, PlaceOutcome, SessionRow } from '../rows/sessions.ts';
import { assertAmount } from './credit-ledger.ts';
import { DETAIL_BYTES_MAX, LOCK_SPACE } from './events.ts';
import { STALE_SECONDS } from './line.ts';
import { createdEvent } from './session-events.ts';

/** The maximum number of attempts. An attempt has no effect if the limits are replaced between its two statements. */
const ATTEMPTS_MAX = 5;
/**
 * The maximum time between the generation of a session's id and its placement. A create waits in the queue for a
 * shorter time.
 */
const ID_TO_PLACE_MS_MAX = 120_000;

export async function place(db: Db, newSession: NewSession, options?: PlaceOptions): Promise<PlaceOutcome> {
  if (!options) return toPlaceOutcome(newSession, await placeSession(db, argumentsOf(newSession)));
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const limits = await limitsOf(db, newSession.applicationId);
    const terms = options.terms(limits.configured);
    const row = { ...newSession, expiresAt: terms.expiresAt };
    const hold = options.hold?.(terms.expiresAt);
    const placement = await placeSession(db, argumentsOf(row, { ...options, ...terms, ...limits }, hold));
    if (placement.outcome !== 'changed') return toPlaceOutcome(row, placement, limits, hold);
  }
  throw new Error(
    `the session could not be placed: the limits of application ${newSession.applicationId} changed during each attempt`,
  );
}

interface Limits {
  readonly configured: JsonObject;
  readonly revision: number;
}

async function limitsOf(db: Db, application: ApplicationId): Promise<Limits> {
  const limits = db.selectFrom('applicationLimits').select(['configured', 'revision']).modifyFront(KEPT_PLAN);
  return limits.where('applicationId', '=', application).executeTakeFirstOrThrow();
}

/**
 * The arguments of `place_session`, by name. Without `limits_revision`, limits are not checked; without `line_seconds`,
 * the queue is not checked.
 */
const argumentsOf = (row: NewSession, options?: PlaceOptions & PlacementTerms & Limits, hold?: Hold) => ({
  new_session: row.id,
  application: row.applicationId,
  host: row.hostId,
  agent_key: row.keyId ?? null,
  at_region: row.region,
  keeps_alive: row.keepAlive,
  metadata: JSON.stringify(row.userMetadata),
  set_to: JSON.stringify(row.settings),
  created: row.createdAt,
  expires: row.expiresAt,
  first_connect: row.connectBy ?? null,
  digest: row.createDigest ?? null,
  limits_revision: options?.revision ?? null,
  created_after: options?.createdAfter ?? null,
  first_id: options ? firstIdOf(options.createdAfter) : null,
  living_below: options?.below.living ?? null,
  created_below: options?.below.created ?? null,
  egress_below: options?.below.egressBytes ?? null,
  line_seconds: options?.line ? STALE_SECONDS : null,
  line_turn: options?.line?.turn ?? null,
  line_place: options?.line?.place ?? null,
  ...holdOf(row, hold),
  run_owner: options?.run?.owner ?? null,
  run_key: options?.run?.keyDigest ?? null,
  run_id: options?.run?.run ?? null,
  facts: JSON.stringify(createdEvent(row).detail),
  facts_bytes_max: DETAIL_BYTES_MAX,
  lock_space: LOCK_SPACE,
});

function holdOf({ createdAt }: NewSession, hold?: Hold) {
  if (hold) assertAmount(hold.amount);
  return {
    hold_id: hold?.id ?? null,
    hold_sum: hold?.amount ?? null,
    browser_second: hold?.rates.browserSecond ?? null,
    egress_megabyte: hold?.rates.egressMegabyte ?? null,
    hold_due: hold?.dueAt ?? null,
    hold_entry: hold ? newId<CreditEntryId>(createdAt) : null,
  };
}

/** Members that do not apply to the outcome are null. */
interface Placement {
  readonly outcome: 'placed' | 'changed' | 'over' | 'behind' | 'full' | 'short';
  readonly living: number;
  readonly made: number;
  readonly oldest: Date | null;
  readonly moved: number;
  readonly behind: JsonObject;
  readonly slots: number;
  readonly used: number;
  readonly available: number;
}

async function placeSession(db: Db, args: ReturnType<typeof argumentsOf>): Promise<Placement> {
  const names = Object.keys(args).map((name, at) => `${name} => $${at + 1}`);
  const text = `select ${KEPT_PLAN_MARK} outcome, living, made, oldest, moved, behind, slots, used, available
    from place_session(${names.join(', ')})`;
  const { rows } = await db.executeQuery<Placement>(CompiledQuery.raw(text, Object.values(args)));
  if (!rows[0]) throw new Error('place_session returned no row');
  return rows[0];
}

function toPlaceOutcome(row: NewSession, placement: Placement, limits?: Limits, hold?: Hold): PlaceOutcome {
  const { outcome, behind, slots, used, available } = placement;
  const use = limits && { ...applicationUseOf(placement), configured: limits.configured };
  if (outcome === 'placed') return { placed: storedRowOf(row), ...(use ? { use } : {}) };
  if (outcome === 'full') return { full: { slots, used: Math.min(slots, used) } };
  if (outcome === 'behind') return { behind };
  if (outcome === 'over' && use) return { over: use };
  if (outcome === 'short' && hold) return { short: { required: hold.amount, available } };
  throw new Error(`place_session returned the unexpected outcome ${outcome}`);
}

const applicationUseOf = ({ living, made, oldest, moved }: Placement): Omit<ApplicationUse, 'configured'> => ({
  ...{ living, created: made, egressBytes: moved },
  ...(oldest ? { oldest } : {}),
});

/** The row as it would be read from the table. */
const storedRowOf = ({ createDigest: _, ...row }: NewSession): SessionRow => ({
  ...row,
  status: 'PENDING',
  proxyBytes: 0,
  egressBytes: 0,
  updatedAt: row.createdAt,
  attached: false,
});

/**
 * Counts the sessions that have not ended and the sessions created after a time, and reads the network bytes of the UTC
 * day.
 */
export async function countOf(db: Db, application: ApplicationId, since: Date, now: Date): Promise<Counts> {
  const { rows } = await sql<Counts>`
    select
      (select count(*) from sessions
        where application_id = ${application} and status in ('PENDING', 'RUNNING')) as living,
      coalesce((select bytes from egress_days
        where application_id = ${application} and day = (${now}::timestamptz at time zone 'UTC')::date), 0) as egress_bytes,
      count(*) as created
    from sessions
    where application_id = ${application} and created_at > ${since} and id >= ${firstIdOf(since)}`.execute(db);
  return rows[0] ?? { living: 0, created: 0, egressBytes: 0 };
}

/**
 * A lower bound for the scan of the index on ids, which begin with the time of their generation. The statements also
 * compare the creation time.
 */
const firstIdOf = (createdAfter: Date): SessionId => firstIdAt(addMs(createdAfter, -ID_TO_PLACE_MS_MAX));
