// What is open under agent keys: sockets and streams, each closed when its key ends. A key ends by a revocation, here or in
// another process, or by its time. Whether an address that was made under a key still works is asked here as well.
import type { KeyRow } from '../../engines/store/rows/credentials.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId, KeyId } from '../../kit/ids.ts';
import type { Log } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import { fault } from '../faults.ts';
import { statusOf } from './credential-rules.ts';

/** A key with nothing open is read again after this. */
const REMEMBERED_MS = 30_000;
/** Keys with nothing open that are remembered. */
const REMEMBERED_MAX = 1_000;

/** Which key a caller came with, or an address was made under. */
export interface UsedKey {
  readonly applicationId: ApplicationId;
  readonly keyId: KeyId;
}

interface Entry extends UsedKey {
  readonly ends: Set<() => void>;
  row: KeyRow | undefined;
  readAtMs: number;
  /** What is known of the key may have changed. */
  stale: boolean;
}

export interface KeyUsesParts {
  readonly store: { readonly keys: Pick<Store['keys'], 'get'> };
  readonly clock: Clock;
  readonly log: Log;
}

export class KeyUses {
  readonly #parts: KeyUsesParts;
  readonly #entries = new Map<KeyId, Entry>();
  /** Grows with each change of a key: what was read before one is not believed after it. */
  #changes = 0;

  constructor(parts: KeyUsesParts) {
    this.#parts = parts;
  }

  /** Rejects with 401 where the key has ended. */
  async demand(key: UsedKey): Promise<void> {
    const entry = this.#entry(key);
    const isKnown = entry.row && !entry.stale && this.#parts.clock.monotonicMs() - entry.readAtMs < REMEMBERED_MS;
    if (!isKnown) await this.#read(entry);
    if (!this.#isLiving(entry)) throw ended();
  }

  /** Calls `end` once when the key ends, at once where it has ended already. */
  hold(key: UsedKey, end: () => void): Closeable {
    const entry = this.#entry(key);
    entry.ends.add(end);
    if (!entry.row) entry.stale = true;
    void this.tend();
    return { close: () => void entry.ends.delete(end) };
  }

  /** A key has changed or ended; `keeps`: what is open under it stays open. */
  changed(hash: string, keeps: boolean): void {
    this.#changes += 1;
    for (const entry of this.#entries.values()) {
      if (entry.row && entry.row.hash.toString('hex') !== hash) continue;
      entry.stale = true;
      if (keeps && entry.row) entry.ends.clear();
    }
    void this.tend();
  }

  /** Changes may have gone unheard. */
  allChanged(): void {
    this.#changes += 1;
    for (const entry of this.#entries.values()) entry.stale = true;
    void this.tend();
  }

  /** Closes what is open under keys that have ended. What cannot be read now is read the next time. */
  async tend(): Promise<{ ended: number }> {
    let count = 0;
    for (const entry of [...this.#entries.values()]) {
      if (entry.ends.size === 0) continue;
      if (entry.stale)
        await this.#read(entry).catch(error => this.#parts.log.warn('key.not_read', { reason: reason(error) }));
      if (!entry.stale && !this.#isLiving(entry)) count += this.#end(entry);
    }
    return { ended: count };
  }

  async #read(entry: Entry): Promise<void> {
    const before = this.#changes;
    entry.row = await this.#parts.store.keys.get(entry.applicationId, entry.keyId);
    entry.readAtMs = this.#parts.clock.monotonicMs();
    entry.stale = before !== this.#changes;
    if (entry.stale) return this.#read(entry);
  }

  #isLiving({ row }: Entry): boolean {
    return row !== undefined && statusOf(row, this.#parts.clock.now()) === 'active';
  }

  #end(entry: Entry): number {
    const ends = [...entry.ends];
    entry.ends.clear();
    for (const end of ends) end();
    return ends.length;
  }

  #entry({ applicationId, keyId }: UsedKey): Entry {
    const standing = this.#entries.get(keyId);
    if (standing) return standing;
    if (this.#entries.size >= REMEMBERED_MAX) this.#forgetUnused();
    const entry: Entry = { applicationId, keyId, ends: new Set(), row: undefined, readAtMs: 0, stale: true };
    this.#entries.set(keyId, entry);
    return entry;
  }

  #forgetUnused(): void {
    for (const [id, { ends }] of this.#entries) if (ends.size === 0) this.#entries.delete(id);
  }
}

const ended = (): Error =>
  fault('invalid_credentials', 'The agent key that this address was issued to has expired or was revoked.', {
    advice: 'Read the session with another agent key of the application to get a new address.',
  });
