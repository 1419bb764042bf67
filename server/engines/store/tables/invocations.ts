// Invocations of operations. Each change of state is one conditional statement.
import { type RawBuilder, type Selectable, sql } from 'kysely';
import { type InvocationId, newId, type ReservationId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';
import type { CreditRates } from '../../../kit/metered-cost.ts';
import type { Announcer } from '../announcer.ts';
import { type Db, inTransaction } from '../database.ts';
import type { NewHold, Shortage } from '../rows/credits.ts';
import type {
  CallLimits,
  CallTotals,
  InvocationEnd,
  InvocationInsertOutcome,
  InvocationRow,
  InvocationRows,
} from '../rows/invocations.ts';
import type { Tables } from '../schema.ts';
import { hold, lockHeld, settle, settleExpression } from './credit-ledger.ts';
import { applicationEventExpression } from './events.ts';
import { idNear } from './id-near.ts';
import { withoutNulls } from './without-nulls.ts';

const OPEN_STATES = ['accepted', 'dispatched'] as const;
const INSERT_ATTEMPTS_MAX = 3;

export const invocations = (db: Db, announcer: Announcer): InvocationRows => ({
  // Without limits and without credit to hold, this is one statement, which commits on its own.
  insert: (row, rates, limits) =>
    limits || row.reserved > 0
      ? inTransaction(db, trx => insert(trx, row, rates, limits))
      : insert(db, row, rates, undefined),

  withdraw: (id, at) =>
    inTransaction(db, async trx => {
      await lockHeld(trx, id);
      const deletion = trx.deleteFrom('invocations').where('id', '=', id).where('state', '=', 'accepted');
      const [withdrawnRow] = await deletion.returning('id').execute();
      if (withdrawnRow) await settle(trx, id, { cost: 0, at });
    }),

  get: async (application, id) => {
    const query = db
      .selectFrom('invocations')
      .selectAll()
      .where('applicationId', '=', application)
      .where('id', '=', id);
    return (await query.execute()).map(rowOf)[0];
  },

  list: async (application, { keyId, operationId, states, jobId, createdAfter, createdBefore, before, limit }) => {
    let query = db
      .selectFrom('invocations')
      .selectAll()
      .where('applicationId', '=', application)
      .orderBy('id', 'desc')
      .limit(limit);
    if (keyId !== undefined) query = query.where('keyId', '=', keyId);
    if (operationId !== undefined) query = query.where('operationId', '=', operationId);
    if (states !== undefined) query = query.where('state', 'in', states);
    if (jobId !== undefined) query = query.where('jobId', '=', jobId);
    // The bounds on the id limit the index scan to the requested period.
    if (createdAfter !== undefined)
      query = query.where('id', '>=', idNear<InvocationId>(createdAfter, -1)).where('createdAt', '>=', createdAfter);
    if (createdBefore !== undefined)
      query = query.where('id', '<', idNear<InvocationId>(createdBefore, 1)).where('createdAt', '<', createdBefore);
    if (before !== undefined) query = query.where('id', '<', before);
    return (await query.execute()).map(rowOf);
  },

  ofConsumer: async (consumer, { before, limit }) => {
    let query = db
      .selectFrom('invocations')
      .selectAll()
      .where('consumerId', '=', consumer)
      .where('receiptId', 'is not', null);
    if (before) query = query.where('id', '<', before);
    return (await query.orderBy('id', 'desc').limit(limit).execute()).map(rowOf);
  },

  callsSince: (key, operationId, since) => callTotalsSince(db, key, operationId, since),

  dispatch: async (id, startedAt, session) => {
    const update = db
      .updateTable('invocations')
      .set(eb => ({
        state: 'dispatched',
        startedAt: eb.fn.coalesce('startedAt', sql<Date>`${startedAt}::timestamptz`),
        attempts: eb('attempts', '+', 1),
        ...(session === undefined ? {} : { sessionId: session }),
      }))
      .where('id', '=', id)
      .where('state', 'in', OPEN_STATES)
      .returningAll();
    return (await update.execute()).map(rowOf)[0];
  },

  end: async (id, end) => {
    const endedInvocation = await endInvocation(db, id, end);
    announcer.announceEvents(endedInvocation ? [{ applicationId: endedInvocation.applicationId }] : []);
    return endedInvocation;
  },

  listOpen: async (host, batchSize) => {
    const query = db.selectFrom('invocations').selectAll().where('hostId', '=', host).where('state', 'in', OPEN_STATES);
    return (await query.orderBy('id').limit(batchSize).execute()).map(rowOf);
  },

  hasReceipt: async id =>
    (await db.selectFrom('invocations').select('id').where('receiptId', '=', id).execute()).length > 0,

  listOutputDue: async (now, batchSize) => {
    const query = db.selectFrom('invocations').selectAll().where('outputUntil', '<=', now);
    return (await query.orderBy('outputUntil').limit(batchSize).execute()).map(rowOf);
  },

  forgetOutput: async id => {
    await db.updateTable('invocations').set({ output: null, outputUntil: null }).where('id', '=', id).execute();
  },

  forgetInputs: async (now, batchSize) => {
    const query = db.selectFrom('invocations').select('id').where('inputUntil', '<=', now).limit(batchSize);
    const update = db.updateTable('invocations').set({ sealedInput: null, inputUntil: null }).where('id', 'in', query);
    return (await update.returning('id').execute()).length;
  },

  forget: async (endedBefore, batchSize) => {
    const query = db.selectFrom('invocations').select('id').where('endedAt', '<', endedBefore).limit(batchSize);
    return (await db.deleteFrom('invocations').where('id', 'in', query).returning('id').execute()).length;
  },
});

async function insert(
  trx: Db,
  row: InvocationRow,
  rates: CreditRates,
  limits: CallLimits | undefined,
  attempt = 1,
): Promise<InvocationInsertOutcome> {
  if (limits) await trx.selectFrom('keys').select('id').where('id', '=', row.keyId).forNoKeyUpdate().execute();
  const { metadata, ...columns } = row;
  const insertedRows = await trx
    .insertInto('invocations')
    .values({
      ...columns,
      meters: JSON.stringify(row.meters),
      output: null,
      error: null,
      metadata: metadata === undefined ? null : JSON.stringify(metadata),
    })
    .onConflict(conflict =>
      conflict.columns(['keyId', 'idempotencyKey']).where('idempotencyKey', 'is not', null).doNothing(),
    )
    .returning('id')
    .execute();
  if (insertedRows.length === 0) {
    const existingInvocation = await findExisting(trx, row);
    if (existingInvocation) return { existing: existingInvocation };
    // The invocation that caused the conflict was withdrawn between the two statements.
    if (attempt === INSERT_ATTEMPTS_MAX)
      throw new Error(
        'the invocation could not be inserted: during each attempt, another invocation with the same idempotency key was withdrawn',
      );
    return insert(trx, row, rates, limits, attempt + 1);
  }
  const refusal = (await limitRefusal(trx, row, limits)) ?? (await holdCredit(trx, row, rates));
  if (refusal === 'held') return 'inserted';
  await trx.deleteFrom('invocations').where('id', '=', row.id).execute();
  return refusal;
}

/** Checks the limits after the row has been inserted, so the counted calls include this one. */
async function limitRefusal(
  trx: Db,
  { keyId, operationId, reserved }: InvocationRow,
  limits: CallLimits | undefined,
): Promise<'calls_used_up' | { readonly spent: number } | undefined> {
  if (!limits) return undefined;
  const { countedSince, callsMax = Infinity, costMax = Infinity } = limits;
  const { calls, cost } = await callTotalsSince(trx, keyId, operationId, countedSince);
  if (calls > callsMax) return 'calls_used_up';
  return cost > costMax ? { spent: cost - reserved } : undefined;
}

/** Holds the credit that an invocation reserves. If the amount is 0, no balance is locked. */
async function holdCredit(
  trx: Db,
  row: InvocationRow,
  rates: CreditRates,
): Promise<'held' | { readonly short: Shortage }> {
  const { id, applicationId, hostId, keyId, operationId, reserved: amount, createdAt: at } = row;
  if (amount === 0) return 'held';
  const holdRequest: NewHold = {
    ...{ id: newId<ReservationId>(at), applicationId, hostId, keyId, operationId, amount, rates, at },
    ...{ purposeKind: 'invocation', purposeId: id },
  };
  const outcome = await hold(trx, holdRequest);
  return outcome === 'held' ? outcome : { short: outcome };
}

/**
 * Ends an invocation with one statement. The balance is locked before the row of the invocation, as in all other
 * statements that lock both.
 */
async function endInvocation(
  db: Db,
  id: InvocationRow['id'],
  invocationEnd: InvocationEnd,
): Promise<InvocationRow | undefined> {
  const { output, error, meters, captured, heldUntil: _, ...end } = invocationEnd;
  const update = db
    .updateTable('invocations')
    .set({
      ...end,
      ...(captured === undefined ? {} : { captured }),
      ...(end.inputUntil ? {} : { sealedInput: null }),
      meters: JSON.stringify(meters),
      ...(output === undefined ? {} : { output: JSON.stringify(output) }),
      ...(error === undefined ? {} : { error: JSON.stringify(error) }),
    })
    .where('id', '=', id)
    .where('state', 'in', OPEN_STATES)
    .where(settleCredit(id, invocationEnd))
    .returningAll()
    .returning(END_EVENT.as('eventId'));
  return (await update.execute()).map(({ eventId: _, ...row }) => rowOf(row))[0];
}

/** The event that reports the end of the invocation. It contains neither input nor output. */
const END_EVENT = applicationEventExpression(sql`application_id`, {
  type: sql`'invocation.' || state`,
  at: sql`ended_at`,
  actor: { kind: 'agentKey', id: sql`key_id` },
  detail: sql`jsonb_strip_nulls(jsonb_build_object('invocationId', id, 'operationId', operation_id, 'revision', operation_revision,
    'sessionId', session_id, 'code', error ->> 'code', 'attempts', attempts))`,
});

/**
 * A condition that, as a side effect, settles or keeps the credit that the invocation holds. This happens before the
 * row is locked, and only if this statement sees that the row is open. If a concurrent statement has already ended the
 * invocation and settled the credit, this statement finds nothing to settle and no open row.
 */
function settleCredit(
  id: InvocationRow['id'],
  { captured, heldUntil, meters, endedAt }: InvocationEnd,
): RawBuilder<boolean> {
  const meteredUse = meteredUseOf(meters);
  const creditCall =
    captured === undefined
      ? sql`keep_credit(invocations.id, ${heldUntil ?? null}::timestamptz)`
      : sql`coalesce(${settleExpression(id, { cost: captured, at: endedAt, metered: meteredUse })}, 0) >= 0`;
  return sql`case when invocations.id = ${id}::uuid and state in ('accepted', 'dispatched') then ${creditCall} else false end`;
}

const meteredUseOf = ({ browserSeconds, egressBytes }: JsonObject) => ({
  ...{ seconds: Math.ceil(Number(browserSeconds ?? 0)), bytes: Number(egressBytes ?? 0) },
});

async function findExisting(trx: Db, row: InvocationRow): Promise<InvocationRow | undefined> {
  const { keyId, idempotencyKey = '' } = row;
  const query = trx.selectFrom('invocations').selectAll().where('keyId', '=', keyId);
  return (await query.where('idempotencyKey', '=', idempotencyKey).execute()).map(rowOf)[0];
}

async function callTotalsSince(
  db: Db,
  key: InvocationRow['keyId'],
  operationId: string,
  since: Date,
): Promise<CallTotals> {
  const query = db
    .selectFrom('invocations')
    .where('keyId', '=', key)
    .where('operationId', '=', operationId)
    .where('createdAt', '>=', since);
  // An open or ambiguous call is counted at its reserved amount, because its credit has not been settled.
  const cost = sql<number>`coalesce(sum(case when state in ('accepted', 'dispatched', 'ambiguous')
    then reserved else captured end), 0)::bigint`;
  return query.select([sql<number>`count(*)`.as('calls'), cost.as('cost')]).executeTakeFirstOrThrow();
}

const rowOf = (row: Selectable<Tables['invocations']>): InvocationRow => withoutNulls(row);
