// Hosts of a fleet: the address at which other hosts reach a host, the end of its lease, and the marks that show
// whether all hosts have the same secret and the same file storage.
import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  // `alone`: without a lease. `up`: renews its lease. `away`: is restarting. `left`: stopped for good. `lost`: its
  // lease ran out. `removed`: the operator removed it from the list.
  `alter table hosts
    add column state text not null default 'alone'
      check (state in ('alone', 'up', 'away', 'left', 'lost', 'removed')),
    add column incarnation uuid,
    add column lease_until timestamptz(3),
    add column draining boolean not null default false,
    add column url text,
    add column labels jsonb not null default '{}',
    add column version text,
    add column warm integer not null default 0,
    add column secret_mark text,
    add column store_mark text,
    add column clock_ms integer not null default 0,
    add constraint hosts_lease check (state not in ('up', 'away') or (incarnation is not null and lease_until is not null
      and url is not null))`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db);
}
