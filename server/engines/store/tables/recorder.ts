// Changes sessions and writes the events about the changes in one statement, and therefore in one commit.
import { type InsertQueryBuilder, type Selectable, sql, type UpdateQueryBuilder } from 'kysely';
import type { Announcer } from '../announcer.ts';
import type { Db } from '../database.ts';
import type { SessionRow } from '../rows/sessions.ts';
import type { SessionsTable, Tables } from '../schema.ts';
import { type EventToRecord, recordExpression } from './events.ts';
import { sessionRow } from './session-row.ts';

type ChangedSession = Selectable<SessionsTable>;
/** A statement that changes sessions and returns all columns of the changed rows. */
export type SessionChange =
  | UpdateQueryBuilder<Tables, 'sessions', 'sessions', ChangedSession>
  | InsertQueryBuilder<Tables, 'sessions', ChangedSession>;

export class Recorder {
  readonly #db: Db;
  readonly #announcer: Announcer;

  constructor(db: Db, announcer: Announcer) {
    this.#db = db;
    this.#announcer = announcer;
  }

  /** Returns the rows that were changed. Events are written only for these rows. */
  async write(change: SessionChange, ...events: readonly EventToRecord[]): Promise<SessionRow[]> {
    const rows = await writeWithEvents(this.#db, change, ...events);
    this.#announcer.announceEvents(rows);
    return rows;
  }

  /** Sends the notifications for events that were written without `write`. Call after the commit. */
  announce(row: SessionRow): void {
    this.#announcer.announceEvents([row]);
  }
}

/** Must be the last statement of a transaction, because it takes a lock that readers wait for. */
async function writeWithEvents(
  db: Db,
  change: SessionChange,
  ...events: readonly EventToRecord[]
): Promise<SessionRow[]> {
  const writtenRows = await db
    .with('changed', () => change)
    .selectFrom('changed')
    .selectAll('changed')
    .select(sql<unknown>`array[${sql.join(events.map(recordExpression))}]`.as('events'))
    .execute();
  return writtenRows.map(({ events: _, ...row }) => sessionRow(row));
}
