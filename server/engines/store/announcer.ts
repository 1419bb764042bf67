// Notifies all processes that a session or an application has new events. NOTIFY runs after the commit, because inside
// a transaction it makes all commits wait for one lock of the whole database server. Readers also poll, so a lost
// notification only delays them.
import { setTimeout as timer } from 'node:timers/promises';
import { sql } from 'kysely';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId, SessionId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import type { Db } from './database.ts';
import type { Channel } from './store.ts';

const CHANNEL: Channel = 'session_event';
/**
 * How long to collect events before a notification is sent. Longer than all steps of one create take together, so that
 * one notification covers all of its events.
 */
const BATCH_DELAY_MS = 20;

export class Announcer {
  readonly #db: Db;
  readonly #log: Log;
  readonly #pendingPayloads = new Set<string>();
  #isAnnouncing = false;

  constructor(db: Db, log: Log) {
    this.#db = db;
    this.#log = log;
  }

  /**
   * Announces that these sessions have new events, or, for a row without `id`, that the application has new events.
   * Returns before the notification is sent.
   */
  announceEvents(rows: readonly { readonly applicationId: ApplicationId; readonly id?: SessionId }[]): void {
    for (const { applicationId, id = '' } of rows) this.#pendingPayloads.add(`${applicationId} ${id}`);
    if (!this.#isAnnouncing && this.#pendingPayloads.size > 0) void this.#announceAll();
  }

  async #announceAll(): Promise<void> {
    this.#isAnnouncing = true;
    try {
      while (this.#pendingPayloads.size > 0) {
        await timer(BATCH_DELAY_MS);
        const payloads = [...this.#pendingPayloads];
        this.#pendingPayloads.clear();
        // The statement changes no table, so its commit need not wait for the disk.
        await sql`select set_config('synchronous_commit', 'off', true), pg_notify(${CHANNEL}, payload)
          from unnest(${payloads}::text[]) as payload`.execute(this.#db);
      }
    } catch (error) {
      this.#log.debug('store.events_not_announced', { reason: reason(error) });
    } finally {
      this.#isAnnouncing = false;
    }
  }
}
