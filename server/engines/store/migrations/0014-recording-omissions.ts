// Pages that are not recorded because there were too many pages. The list of replays shows these pages.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create table recording_omissions (
        session_id uuid not null references sessions on delete cascade,
        why text not null check (why in ('too_many_at_once', 'too_many_in_all')),
        target_id text not null,
        page integer,
        primary key (session_id, why, target_id)
      )`,
    )
    .execute(db);
}
