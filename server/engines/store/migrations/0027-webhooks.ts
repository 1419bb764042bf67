// Webhooks and their deliveries. For each webhook and event, a delivery is written once, in the statement that
// advances the webhook's position in the event feed.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  `create table webhooks (
    id uuid primary key,
    application_id uuid not null references applications (id),
    name text not null,
    url text not null,
    event_types text[] not null,
    status text not null check (status in ('enabled', 'disabled')),
    disabled_reason text check (disabled_reason in ('caller', 'failing', 'gone')),
    disabled_at timestamptz(3),
    failing_since timestamptz(3),
    read_through bigint not null,
    key_version integer not null,
    public_key text not null,
    sealed_key bytea not null,
    former_public_key text,
    former_sealed_key bytea,
    former_until timestamptz(3),
    revision integer not null,
    created_at timestamptz(3) not null,
    check ((status = 'disabled') = (disabled_at is not null))
  )`,
  'create index webhooks_by_application on webhooks (application_id, id)',
  `create index webhooks_enabled on webhooks (id) where status = 'enabled'`,
  `create table webhook_deliveries (
    id uuid primary key,
    webhook_id uuid not null references webhooks (id) on delete cascade,
    application_id uuid not null,
    event_id bigint,
    event_type text not null,
    body text not null,
    status text not null check (status in ('waiting', 'delivered', 'dead')),
    attempts integer not null default 0,
    created_at timestamptz(3) not null,
    due_at timestamptz(3),
    attempted_at timestamptz(3),
    delivered_at timestamptz(3),
    answer_status integer,
    failure text,
    check ((status = 'waiting') = (due_at is not null))
  )`,
  'create unique index webhook_deliveries_once on webhook_deliveries (webhook_id, event_id) where event_id is not null',
  'create index webhook_deliveries_by_webhook on webhook_deliveries (webhook_id, id)',
  'create index webhook_deliveries_due on webhook_deliveries (due_at, webhook_id) where due_at is not null',
  'create index webhook_deliveries_waiting on webhook_deliveries (webhook_id, due_at, event_id) where due_at is not null',
  'create index webhook_deliveries_by_age on webhook_deliveries (created_at)',
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
