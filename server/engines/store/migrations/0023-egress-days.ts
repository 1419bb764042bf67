// Bytes that the sessions of an application transferred over the network, by day.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create table egress_days (
        application_id uuid not null references applications,
        day date not null,
        bytes bigint not null check (bytes >= 0),
        primary key (application_id, day)
      )`,
    )
    .execute(db);
  await sql.raw('create index egress_days_by_day on egress_days (day)').execute(db);
}
