// All migrations in their order. A migration that was released is never changed; a new one gets the next number.
import type { Migration } from 'kysely/migration';
import { up as first } from './0001-first.ts';
import { up as limits } from './0002-limits.ts';
import { up as events } from './0004-events.ts';

export const migrations: Record<string, Migration> = {
  '0001-first': { up: first },
  '0002-limits': { up: limits },
  '0004-events': { up: events },
};
