// The audit log. The database numbers the entries (migrations/0017-audit.ts).
import { type Selectable, sql } from 'kysely';
import type { Db } from '../database.ts';
import type { AuditRow, AuditRows, NewAuditRow } from '../rows/audit.ts';
import type { AuditEntriesTable } from '../schema.ts';

/** The chain for entries that concern no application. */
const NO_APPLICATION_CHAIN = '00000000-0000-0000-0000-000000000000';

export const audit = (db: Db): AuditRows => ({
  insert: async row => {
    await db.insertInto('auditEntries').values(valuesOf(row)).execute();
  },

  list: async (application, { limit, before, action, actorId, after }) => {
    let query = db
      .selectFrom('auditEntries')
      .selectAll()
      .where('chain', '=', application ?? NO_APPLICATION_CHAIN);
    if (before !== undefined)
      query = query.where('number', '<', eb => eb.selectFrom('auditEntries').select('number').where('id', '=', before));
    if (action !== undefined) query = query.where('action', '=', action);
    if (actorId !== undefined) query = query.where('actorId', '=', actorId);
    if (after !== undefined) query = query.where('at', '>', after);
    return (await query.orderBy('number', 'desc').limit(limit).execute()).map(auditRow);
  },

  forget: async batchSize => {
    const { rows } = await sql<{ gone: number }>`select forget_audit(${batchSize}::integer) as gone`.execute(db);
    return rows[0]?.gone ?? 0;
  },

  chains: async () => {
    const { rows } = await sql<{ chain: string }>`
      with recursive ${chainsOf('audit_entries')}, ${chainsOf('audit_seals')}
      select chain from audit_entries_chains union select chain from audit_seals_chains`.execute(db);
    return rows.flatMap(({ chain }) => chain ?? []);
  },

  unsealedChains: async () => {
    const { rows } = await sql<{ chain: string }>`
      with recursive ${chainsOf('audit_entries')}
      select chain from audit_entries_chains ours
       where (select max(number) from audit_entries where chain = ours.chain)
           > coalesce((select last_number from audit_seals where chain = ours.chain order by number desc limit 1), 0)`.execute(
      db,
    );
    return rows.map(({ chain }) => chain);
  },

  entriesAfter: async (chain, number, limit) => {
    const query = db.selectFrom('auditEntries').selectAll().where('chain', '=', chain).where('number', '>', number);
    return (await query.orderBy('number').limit(limit).execute()).map(auditRow);
  },

  sealsAfter: (chain, number, limit) => {
    const query = db.selectFrom('auditSeals').selectAll().where('chain', '=', chain).where('number', '>', number);
    return query.orderBy('number').limit(limit).execute();
  },

  lastSeal: chain =>
    db
      .selectFrom('auditSeals')
      .selectAll()
      .where('chain', '=', chain)
      .orderBy('number', 'desc')
      .limit(1)
      .executeTakeFirst(),

  insertSeal: async row => {
    const insertion = db.insertInto('auditSeals').values(row);
    const insertedSeals = await insertion
      .onConflict(on => on.doNothing())
      .returning('number')
      .execute();
    return insertedSeals.length > 0;
  },
});

/** Reads the distinct chains of a table from an index, without reading every row. */
const chainsOf = (table: 'audit_entries' | 'audit_seals') => sql`
  ${sql.id(`${table}_chains`)} as (
    (select chain from ${sql.id(table)} order by chain limit 1)
    union all
    select (select next.chain from ${sql.id(table)} next where next.chain > before.chain order by next.chain limit 1)
      from ${sql.id(`${table}_chains`)} before where before.chain is not null
  )`;

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

function auditRow(row: Selectable<AuditEntriesTable>): AuditRow {
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
