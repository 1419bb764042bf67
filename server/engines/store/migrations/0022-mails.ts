// E-mails to be sent. Without a mail server, they are kept for the operator to read.
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create table mails (
        id uuid primary key,
        recipient text not null,
        subject text not null,
        body text not null,
        created_at timestamptz(3) not null,
        due_at timestamptz(3),
        attempts integer not null default 0,
        sent_at timestamptz(3),
        failure text
      )`,
    )
    .execute(db);
  await sql.raw('create index mails_due on mails (due_at) where due_at is not null').execute(db);
  await sql.raw('create index mails_by_age on mails (created_at)').execute(db);
  await sql.raw('create index mails_by_recipient on mails (recipient, created_at)').execute(db);
}
