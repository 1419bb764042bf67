// Brings a database to the current schema: checks that the server is supported, and runs the missing migrations.
import { sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import { Fault, isFault, reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import { type Db, openDatabase, type Target } from './database.ts';
import { MAJOR_MIN } from './embedded/find-binaries.ts';
import { EMBEDDED_MARK } from './embedded/settings.ts';
import { migrations } from './migrations/index.ts';

/**
 * Uses a separate pool without a statement timeout, because migrating a large table can take a long time, and so can
 * waiting for another process that is migrating. During the migrations, Kysely holds an advisory lock on a second
 * connection.
 */
export async function migrate(target: Target, log: Log): Promise<void> {
  const database = openDatabase(target, log, { poolMax: 2, statementMs: 0 });
  try {
    await runMigrations(database.db, log);
  } finally {
    await database.close();
  }
}

/** Refuses a server that does not support our schema. `isOperatorServer`: the operator configured the server. */
export async function assertServerSupported(db: Db, isOperatorServer: boolean): Promise<void> {
  const { rows } = await sql<{ major: number; version: string; encoding: string; embedded: string | null }>`
    select current_setting('server_version_num')::int / 10000 as major,
           current_setting('server_version') as version,
           current_setting('server_encoding') as encoding,
           current_setting(${EMBEDDED_MARK}, true) as embedded`.execute(db);
  const server = rows[0];
  if (!server || server.major < MAJOR_MIN)
    throw new Fault('database_too_old', `The database server runs PostgreSQL ${server?.version}, which is too old.`, {
      advice: `Berth requires PostgreSQL ${MAJOR_MIN} or newer: upgrade the server, or unset DATABASE_URL to use the embedded PostgreSQL.`,
    });
  if (isOperatorServer && server.embedded)
    throw new Fault('database_unusable', 'DATABASE_URL points to the embedded PostgreSQL of another server.', {
      advice:
        'An embedded PostgreSQL serves only one host. For several hosts, run your own PostgreSQL; otherwise unset DATABASE_URL.',
    });
  if (server.encoding !== 'UTF8')
    throw new Fault('database_unusable', `The database has the encoding ${server.encoding}, but Berth requires UTF8.`, {
      advice:
        'Create a database with CREATE DATABASE berth ENCODING UTF8 TEMPLATE template0, and set DATABASE_URL to it.',
    });
}

async function runMigrations(db: Db, log: Log): Promise<void> {
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => migrations },
    migrationTableName: 'berth_migrations',
    migrationLockTableName: 'berth_migrations_lock',
  });
  const { error, results = [] } = await migrator.migrateToLatest();
  for (const { migrationName, status } of results) log.info('store.migration', { name: migrationName, status });
  if (error !== undefined) throw migrationFault(error);
}

function migrationFault(error: unknown): Fault {
  if (isFault(error)) return error;
  if (/previously executed migration .* is missing/.test(reason(error)))
    return new Fault(
      'database_unusable',
      'The database was migrated by a newer version of Berth, so this version cannot use it.',
      {
        advice: 'Nothing was changed. Start that version, or a newer one.',
        cause: error,
      },
    );
  return new Fault('database_unusable', `The database could not be migrated to this version: ${reason(error)}.`, {
    advice: 'Nothing was changed. If DATABASE_URL is set, its user must be allowed to create tables.',
    cause: error,
  });
}
