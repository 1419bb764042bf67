// The audit log. The database numbers the entries (migrations/0017-audit.ts).
import { type Selectable, sql } from 'kysely';
import type { Db } from '../database.ts';
import type { AuditRow, AuditRows, NewAuditRow } from '../rows/audit.ts';
import type { AuditEntriesTable } from '../schema.ts';

export const audit = (db: Db): AuditRows => ({
  insert: async row => {
    await db.insertInto('auditEntries').values(valuesOf(row)).execute();
  },

  list: async (application, { limit, before, action, actorId, after }) => {
    let listed = db.selectFrom('auditEntries').selectAll().where('chain', '=', application);
    if (before !== undefined)
      listed = listed.where('number', '<', eb =>
        eb.selectFrom('auditEntries').select('number').where('id', '=', before),
      );
    if (action !== undefined) listed = listed.where('action', '=', action);
    if (actorId !== undefined) listed = listed.where('actorId', '=', actorId);
    if (after !== undefined) listed = listed.where('at', '>', after);
    return (await listed.orderBy('number', 'desc').limit(limit).execute()).map(auditRow);
  },

  forget: async batch => {
    const { rows } = await sql<{ gone: number }>`select forget_audit(${batch}::integer) as gone`.execute(db);
    return rows[0]?.gone ?? 0;
  },
});

const valuesOf = ({ id, applicationId, accountId, at, action, actor, via, target, ...rest }: NewAuditRow) => ({
  ...{ id, at, action, outcome: rest.outcome, details: JSON.stringify(rest.details) },
  ...{ applicationId: applicationId ?? null, accountId: accountId ?? null },
  ...{ actorKind: actor.kind, actorId: actor.id ?? null, actorName: actor.name ?? nameOf(actor) },
  ...{ viaKind: via?.kind ?? null, viaId: via?.id ?? null },
  ...{ targetKind: target?.kind ?? null, targetId: target?.id ?? null },
  ...{ ip: rest.ip ?? null, userAgent: rest.userAgent ?? null, requestId: rest.requestId ?? null },
});

const nameOf = ({ kind, id }: NewAuditRow['actor']) =>
  kind === 'account' && id !== undefined ? sql<string>`(select name from accounts where id = ${id})` : null;

export function auditRow(row: Selectable<AuditEntriesTable>): AuditRow {
  const { id, number, applicationId, accountId, at, action, outcome, ip, userAgent, requestId, details } = row;
  return {
    ...{ id, number, at, action, outcome, details },
    ...(applicationId ? { applicationId } : {}),
    ...(accountId ? { accountId } : {}),
    actor: {
      kind: row.actorKind,
      ...(row.actorId ? { id: row.actorId } : {}),
      ...(row.actorName ? { name: row.actorName } : {}),
    },
    ...(row.viaKind && row.viaId ? { via: { kind: row.viaKind, id: row.viaId } } : {}),
    ...(row.targetKind && row.targetId ? { target: { kind: row.targetKind, id: row.targetId } } : {}),
    ...(ip ? { ip } : {}),
    ...(userAgent ? { userAgent } : {}),
    ...(requestId ? { requestId } : {}),
  };
}
