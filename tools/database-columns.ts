// The columns that the migrations create, as a type with which the types of the tables are compared. Reading them takes
// a running PostgreSQL, so `npm run gen` writes the file only when it, this file or a migration has changed.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import type { ColumnKind } from '../server/engines/store/column-mismatch.ts';
import { type Db, openDatabase } from '../server/engines/store/database.ts';
import { migrate } from '../server/engines/store/migrate.ts';
import { openTarget } from '../server/engines/store/open-store.ts';
import { systemClock } from '../server/kit/clock.ts';
import { silentLog } from '../server/kit/log.ts';
import { Scope } from '../server/kit/scope.ts';
import { COLUMNS_PATH, columnsText, type GeneratedFile } from './fresh.ts';

interface ColumnRow {
  readonly tableName: string;
  readonly columnName: string;
  readonly kind: ColumnKind;
}

/** Runs all migrations on an embedded PostgreSQL in a temporary folder. Returns the file for the resulting database. */
export async function databaseColumnsFile(root: string, note: string): Promise<GeneratedFile> {
  const scope = new Scope();
  try {
    const dataDir = mkdtempSync(join(tmpdir(), 'berth-columns-'));
    scope.defer(() => rmSync(dataDir, { recursive: true, force: true }));
    const target = await openTarget({ dataDir, clock: systemClock, log: silentLog }, scope);
    await migrate(target, silentLog);
    const { db } = scope.own(openDatabase(target, silentLog));
    return { path: COLUMNS_PATH, text: columnsText(root, note, interfaceOf(await readColumns(db))) };
  } finally {
    await scope.close();
  }
}

async function readColumns(db: Db): Promise<readonly ColumnRow[]> {
  const { rows } = await sql<ColumnRow>`
    select table_name, column_name,
           case when is_nullable = 'YES' then 'nullable'
                when column_default is not null or is_generated = 'ALWAYS' or is_identity = 'YES' then 'default'
                else 'required' end as kind
      from information_schema.columns where table_schema = 'public'
     order by table_name, column_name`.execute(db);
  return rows;
}

function interfaceOf(columns: readonly ColumnRow[]): string {
  const tables = Map.groupBy(columns, ({ tableName }) => inCamelCase(tableName));
  const members = [...tables].flatMap(([table, rows]) => [
    `  ${table}: {`,
    ...rows.map(({ columnName, kind }) => `    ${inCamelCase(columnName)}: '${kind}';`),
    '  };',
  ]);
  return ['export interface DatabaseColumns {', ...members, '}', ''].join('\n');
}

const inCamelCase = (name: string): string => name.replace(/_([a-z\d])/g, (_, next: string) => next.toUpperCase());
