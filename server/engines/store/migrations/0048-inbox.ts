// Hosts are notified when the items that wait for members change. Members are notified of each item by e-mail, only
// once and only while the item is waiting.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  `create table notification_settings (
    account_id uuid primary key references accounts on delete cascade,
    mails boolean not null default true,
    muted_applications uuid[] not null default '{}',
    told_at timestamptz(3)
  )`,
  // Which e-mail notified which account of which item. A row is deleted when its item is no longer waiting.
  `create table told_items (
    account_id uuid not null,
    application_id uuid not null,
    item_id uuid not null,
    mail_id uuid not null,
    primary key (account_id, item_id),
    foreign key (account_id, application_id) references members on delete cascade
  )`,
  'create index told_items_of_item on told_items (item_id)',
  'create index told_items_of_mail on told_items (mail_id)',
  'alter table mails add column tells_of_waiting boolean not null default false',
  "create index actions_waiting on actions (application_id) where state = 'awaiting_approval'",
  "create index handoffs_waiting on handoffs (application_id) where status = 'requested'",
  `create function inbox_changed() returns trigger language plpgsql as $$
  begin
    if tg_op <> 'INSERT' then
      delete from told_items where item_id = old.id;
    end if;
    perform pg_notify('inbox_changed', coalesce(new.application_id, old.application_id)::text);
    return null;
  end $$`,
  // An e-mail that was not sent yet may name items of the application that its recipient has left, so it is deleted.
  // The recipient is notified again of the other items in the e-mail.
  `create function inbox_left() returns trigger language plpgsql as $$
  declare
    unsent uuid[] := array(select mails.id from mails join told_items on mail_id = mails.id
      where account_id = old.account_id and application_id = old.application_id and sent_at is null);
  begin
    delete from mails where id = any(unsent);
    delete from told_items where mail_id = any(unsent);
    return old;
  end $$`,
  'create trigger members_left before delete on members for each row execute function inbox_left()',
  ...[
    ['actions', "state = 'awaiting_approval'"],
    ['handoffs', "status = 'requested'"],
  ].flatMap(([table, waits]) => [
    `create trigger ${table}_wait after insert on ${table} for each row
      when (new.${waits}) execute function inbox_changed()`,
    `create trigger ${table}_waited after update on ${table} for each row
      when ((old.${waits}) <> (new.${waits})) execute function inbox_changed()`,
    `create trigger ${table}_gone after delete on ${table} for each row
      when (old.${waits}) execute function inbox_changed()`,
  ]),
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
