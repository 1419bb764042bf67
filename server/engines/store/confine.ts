// Sets up the database role of the server's connections. The role has the privileges that the server needs on every
// table, but cannot change or delete entries of the audit log or of the credit ledger. The login that runs the
// migrations owns the tables, and creates the role.
import { sql } from 'kysely';
import pg from 'pg';
import type { Log } from '../../kit/log.ts';
import { type Db, openDatabase, type Target } from './database.ts';

const APPEND_ONLY_TABLES = ['audit_entries', 'audit_seals', 'credit_entries'];
/** Only the login that runs the migrations may access these tables. */
const MIGRATION_TABLES = ['berth_migrations', 'berth_migrations_lock'];
const ADVISORY_LOCK_ID = 1_655_271_030;

interface NamedObject {
  readonly schema: string;
  readonly name: string;
}

/** Creates the role if necessary, and returns its name. Returns undefined if this login may not create roles. */
export async function confine(target: Target, log: Log): Promise<string | undefined> {
  const database = openDatabase(target, log, { poolMax: 1, statementMs: 0 });
  try {
    return await database.db.transaction().execute(ensureRole);
  } catch (error) {
    if (!isRoleRefusal(error)) throw error;
    log.warn('store.not_confined', { reason: error.message });
    return undefined;
  } finally {
    await database.close();
  }
}

const INSUFFICIENT_PRIVILEGE = '42501';
/** SQLSTATE of an error that means: a role of this name exists, but is not visible to this login. */
const DUPLICATE_OBJECT = '42710';

const isRoleRefusal = (error: unknown): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError && (error.code === INSUFFICIENT_PRIVILEGE || error.code === DUPLICATE_OBJECT);

async function ensureRole(trx: Db): Promise<string> {
  await sql`select pg_advisory_xact_lock(${ADVISORY_LOCK_ID})`.execute(trx);
  const { role, exists } = await findRole(trx);
  if (!exists) await sql`create role ${sql.id(role)} nologin`.execute(trx);
  if (!exists) await sql`grant ${sql.id(role)} to current_user`.execute(trx);
  for (const { schema, name, wanted } of await tablesWithWrongPrivileges(trx, role)) {
    await sql`revoke all on ${sql.id(schema, name)} from ${sql.id(role)}`.execute(trx);
    await sql`grant ${sql.raw(wanted)} on ${sql.id(schema, name)} to ${sql.id(role)}`.execute(trx);
    await sql`grant usage on schema ${sql.id(schema)} to ${sql.id(role)}`.execute(trx);
  }
  for (const { schema, name } of await ungrantedSequences(trx, role))
    await sql`grant usage, select on sequence ${sql.id(schema, name)} to ${sql.id(role)}`.execute(trx);
  for (const { schema, name } of await ungrantedFunctions(trx, role))
    await sql`grant execute on function ${sql.id(schema, name)} to ${sql.id(role)}`.execute(trx);
  // Fails here, and not at the first query, if the login is not a member of the role.
  await sql`set local role ${sql.id(role)}`.execute(trx);
  return role;
}

/**
 * Returns the name of the role, and whether the role exists. The name contains the OID of the database, because roles
 * are shared by all databases of a server, but privileges are per database.
 */
async function findRole(trx: Db): Promise<{ role: string; exists: boolean }> {
  const { rows } = await sql<{ role: string; exists: boolean }>`
    select 'berth_server_' || oid as role,
           exists (select from pg_roles where rolname = 'berth_server_' || pg_database.oid) as exists
      from pg_database where datname = current_database()`.execute(trx);
  const [row] = rows;
  if (!row) throw new Error('the database is not listed in pg_database');
  return row;
}

/**
 * Returns the tables of this login, except those of the migrations, on which the role's privileges differ from the
 * intended ones.
 */
async function tablesWithWrongPrivileges(
  trx: Db,
  role: string,
): Promise<ReadonlyArray<NamedObject & { wanted: string }>> {
  const { rows } = await sql<NamedObject & { wanted: string }>`
    with ours as (
      select relation.oid, nspname as schema, relname as name,
             case when relname = any (${APPEND_ONLY_TABLES}) then '{SELECT,INSERT}'::text[]
                  else '{SELECT,INSERT,UPDATE,DELETE}'::text[] end as wanted
        from pg_class relation join pg_namespace on pg_namespace.oid = relnamespace
       where relkind in ('r', 'p') and relowner = current_user::regrole
         and nspname not like 'pg\\_%' and nspname <> 'information_schema' and relname <> all (${MIGRATION_TABLES})
    )
    select schema, name, array_to_string(wanted, ', ') as wanted from ours
     where exists (
       select from unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) as one
        where has_table_privilege(${role}::name, oid, one) <> (one = any (wanted)))
     order by schema, name`.execute(trx);
  return rows;
}

async function ungrantedSequences(trx: Db, role: string): Promise<readonly NamedObject[]> {
  const { rows } = await sql<NamedObject>`
    select nspname as schema, relname as name
      from pg_sequence join pg_class relation on relation.oid = seqrelid join pg_namespace on pg_namespace.oid = relnamespace
     where relowner = current_user::regrole and nspname not like 'pg\\_%' and nspname <> 'information_schema'
       and not has_sequence_privilege(${role}::name, seqrelid, 'SELECT')`.execute(trx);
  return rows;
}

/** Returns the SECURITY DEFINER functions of the current user that the role may not execute yet. */
async function ungrantedFunctions(trx: Db, role: string): Promise<readonly NamedObject[]> {
  const { rows } = await sql<NamedObject>`
    select nspname as schema, proname as name
      from pg_proc join pg_namespace on pg_namespace.oid = pronamespace
     where prosecdef and proowner = current_user::regrole
       and nspname not like 'pg\\_%' and nspname <> 'information_schema'
       and not has_function_privilege(${role}::name, pg_proc.oid, 'EXECUTE')`.execute(trx);
  return rows;
}
