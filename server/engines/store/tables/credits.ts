// Meters running sessions, and adds credit to accounts. The ledger is changed in credit-ledger.ts; each transaction
// begins here, in place.ts, in sessions.ts or in invocations.ts.
import { sql } from 'kysely';
import type { AccountId, ApplicationId, SessionId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';
import type { Announcer } from '../announcer.ts';
import { type Db, inTransaction } from '../database.ts';
import type { CreditGrants, CreditRows, MeteredSession } from '../rows/credits.ts';
import type { SessionEventType } from '../rows/events.ts';
import { addCredit, lockHeld, meter, reservationRow, settle } from './credit-ledger.ts';
import { recordExpression, SERVICE_ACTOR } from './events.ts';

export const credits = (db: Db, announcer: Announcer): CreditRows => ({
  due: async (host, now, batchSize) => {
    const query = db
      .selectFrom('creditReservations')
      .selectAll()
      .where('hostId', '=', host)
      .where('status', '=', 'held')
      .where('purposeKind', '=', 'session')
      .where('dueAt', '<=', now);
    return (await query.orderBy('dueAt').limit(batchSize).execute()).map(reservationRow);
  },

  meter: async ({ purposeId }, plan) => {
    const meterResult = await db.transaction().execute(async trx => {
      const lockedHold = await lockHeld(trx, purposeId);
      const session = lockedHold && (await readMeteredSession(trx, purposeId));
      if (!lockedHold || !session) return undefined;
      const metering = plan(lockedHold.reservation, session);
      const outcome = await meter(trx, lockedHold, metering);
      const { isEnding } = session;
      if (outcome === 'extended') return { isEnding, notifiedSessions: [] };
      const lowSince = lockedHold.reservation.lowAt ?? metering.at;
      const isFirst = lockedHold.reservation.lowAt === undefined && !isEnding;
      const { required, available } = { required: metering.target, available: lockedHold.balance.available };
      const notifiedSessions = isFirst
        ? await append(trx, purposeId, 'session.credit_low', metering.at, { required, available })
        : [];
      return { isEnding, lowSince, notifiedSessions };
    });
    if (!meterResult) return undefined;
    const { notifiedSessions, ...outcome } = meterResult;
    announcer.announceEvents(notifiedSessions);
    return outcome;
  },

  recordExhaustedCredit: async (session, at) =>
    announcer.announceEvents(await append(db, session, 'credit.exhausted', at, {})),

  recordLowCredit: async (host, threshold, at) => {
    const { rows } = await sql<{ accountId: AccountId; isLow: boolean; available: number; sessionId: SessionId }>`
      select account_id, is_low, available, (array_agg(purpose_id order by reservations.id desc))[1] as session_id
        from credit_balances balances join credit_reservations reservations using (account_id)
        where host_id = ${host} and status = 'held' and purpose_kind = 'session'
          and is_low <> (available < ${threshold}::bigint)
        group by account_id, is_low, available`.execute(db);
    for (const { accountId, isLow, available, sessionId } of rows) {
      const sessionsToAnnounce = await db.transaction().execute(async trx => {
        const update = trx.updateTable('creditBalances').set({ isLow: !isLow }).where('accountId', '=', accountId);
        const [changedBalance] = await update.where('isLow', '=', isLow).returning('accountId').execute();
        return changedBalance && !isLow ? append(trx, sessionId, 'credit.low', at, { available, threshold }) : [];
      });
      announcer.announceEvents(sessionsToAnnounce);
    }
    return rows.length;
  },
});

export const creditGrants = (db: Db): CreditGrants => ({
  add: (account, type, amount, entry, bonus) =>
    inTransaction(db, trx => addCredit(trx, account, type, amount, entry, bonus)),

  expire: (purposeId, at) =>
    inTransaction(db, async trx => {
      const lockedHold = await lockHeld(trx, purposeId);
      if (lockedHold) await settle(trx, purposeId, { cost: 0, at, as: 'expired' });
      return lockedHold?.reservation;
    }),
});

/** Returns the start and end times and the byte count that were last stored for a session. */
async function readMeteredSession(trx: Db, session: string): Promise<MeteredSession | undefined> {
  const { rows } = await sql<{
    startedAt: Date | null;
    expiresAt: Date;
    endReason: string | null;
    bytes: number;
  }>`
    select started_at, expires_at, end_reason,
        greatest(egress_bytes, coalesce(bytes_received + bytes_sent, 0))::bigint as bytes
      from sessions left join session_usage on session_usage.session_id = sessions.id
      where sessions.id = ${session}::uuid`.execute(trx);
  const [row] = rows;
  if (!row) return undefined;
  const { startedAt, expiresAt, endReason, bytes } = row;
  return {
    ...{ expiresAt, bytes, isEnding: endReason !== null },
    ...(startedAt ? { startedAt } : {}),
  };
}

/** Appends an event. Like every append of an event, this must be the last statement of a transaction. */
async function append(
  trx: Db,
  session: string,
  type: SessionEventType,
  at: Date,
  detail: JsonObject,
): Promise<Array<{ id: SessionId; applicationId: ApplicationId }>> {
  const { rows } = await sql<{ id: SessionId; applicationId: ApplicationId }>`
    with changed as (
      select id, application_id from sessions where id = ${session}::uuid and status in ('PENDING', 'RUNNING')
        for no key update
    )
    select changed.id, changed.application_id, ${recordExpression({ type, at, actor: SERVICE_ACTOR, detail })} from changed`.execute(
    trx,
  );
  return rows;
}
