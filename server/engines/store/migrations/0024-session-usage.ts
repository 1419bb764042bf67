// The resources that each session used on its host. The values of a running session are a few seconds old.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create table session_usage (
        session_id uuid primary key references sessions on delete cascade,
        cpu_ms bigint check (cpu_ms >= 0),
        peak_memory_bytes bigint check (peak_memory_bytes >= 0),
        bytes_received bigint not null check (bytes_received >= 0),
        bytes_sent bigint not null check (bytes_sent >= 0)
      )`,
    )
    .execute(db);
}
