// Tracks sockets and streams that were opened with agent keys, and closes them when their key is revoked (here or in
// another process) or expires. Also checks whether the key to which a connect or live view address was issued is still
// active.
import type { KeyRow } from '../../engines/store/rows/credentials.ts';
import type { Store } from '../../engines/store/store.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId, KeyId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import { fault } from '../faults.ts';
import { statusOf } from './credential-rules.ts';

/** A cached key without open connections is read again after this time. */
const CACHE_MS = 30_000;
/** Maximum number of cached keys without open connections. */
const CACHE_SIZE_MAX = 1_000;

/** The key that a caller used, or the key to which a connect or live view address was issued. */
export interface UsedKey {
  readonly applicationId: ApplicationId;
  readonly keyId: KeyId;
}

interface KeyEntry extends UsedKey {
  readonly endListeners: Set<() => void>;
  row: KeyRow | undefined;
  readAtMs: number;
  /** Whether the cached row may be outdated. */
  isStale: boolean;
}

export interface KeyUsesParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly store: { readonly keys: Pick<Store['keys'], 'get'> };
}

export class KeyUses {
  readonly #parts: KeyUsesParts;
  readonly #entries = new Map<KeyId, KeyEntry>();
  /** Incremented by each change of a key. A row that was read before a change is not used afterwards. */
  #changes = 0;

  constructor(parts: KeyUsesParts) {
    this.#parts = parts;
  }

  /** Rejects with 401 if the key is not active. */
  async assertActive(key: UsedKey): Promise<void> {
    const entry = this.#entry(key);
    const isKnown = entry.row && !entry.isStale && this.#parts.clock.monotonicMs() - entry.readAtMs < CACHE_MS;
    if (!isKnown) await this.#read(entry);
    if (!this.#isActive(entry)) throw keyEnded();
  }

  /** Calls `end` once, when the key expires or is revoked. If this has already happened, calls `end` at once. */
  hold(key: UsedKey, end: () => void): Closeable {
    const entry = this.#entry(key);
    entry.endListeners.add(end);
    if (!entry.row) entry.isStale = true;
    void this.reconcile();
    return { close: () => void entry.endListeners.delete(end) };
  }

  /**
   * Called when a key has changed, expired or been revoked. With `shouldKeepConnections`, the open connections of the
   * key stay open.
   */
  handleChange(hash: string, shouldKeepConnections: boolean): void {
    this.#changes += 1;
    for (const entry of this.#entries.values()) {
      if (entry.row && entry.row.hash.toString('hex') !== hash) continue;
      entry.isStale = true;
      if (shouldKeepConnections && entry.row) entry.endListeners.clear();
    }
    void this.reconcile();
  }

  /** Called when notices of changes may have been missed. */
  invalidateAll(): void {
    this.#changes += 1;
    for (const entry of this.#entries.values()) entry.isStale = true;
    void this.reconcile();
  }

  /**
   * Closes the connections of keys that are no longer active. If a key cannot be read now, the next call tries again.
   */
  async reconcile(): Promise<{ ended: number }> {
    let count = 0;
    for (const entry of [...this.#entries.values()]) {
      if (entry.endListeners.size === 0) continue;
      if (entry.isStale)
        await this.#read(entry).catch(error => this.#parts.log.warn('key.not_read', { reason: reason(error) }));
      if (!entry.isStale && !this.#isActive(entry)) count += this.#end(entry);
    }
    return { ended: count };
  }

  async #read(entry: KeyEntry): Promise<void> {
    const changesBefore = this.#changes;
    entry.row = await this.#parts.store.keys.get(entry.applicationId, entry.keyId);
    entry.readAtMs = this.#parts.clock.monotonicMs();
    entry.isStale = changesBefore !== this.#changes;
    if (entry.isStale) return this.#read(entry);
  }

  #isActive({ row }: KeyEntry): boolean {
    return row !== undefined && statusOf(row, this.#parts.clock.now()) === 'active';
  }

  #end(entry: KeyEntry): number {
    const listeners = [...entry.endListeners];
    entry.endListeners.clear();
    for (const end of listeners) end();
    return listeners.length;
  }

  #entry({ applicationId, keyId }: UsedKey): KeyEntry {
    const existingEntry = this.#entries.get(keyId);
    if (existingEntry) return existingEntry;
    if (this.#entries.size >= CACHE_SIZE_MAX) this.#forgetUnused();
    const entry: KeyEntry = {
      applicationId,
      keyId,
      endListeners: new Set(),
      row: undefined,
      readAtMs: 0,
      isStale: true,
    };
    this.#entries.set(keyId, entry);
    return entry;
  }

  #forgetUnused(): void {
    for (const [id, { endListeners: listeners }] of this.#entries) if (listeners.size === 0) this.#entries.delete(id);
  }
}

const keyEnded = (): Error =>
  fault('invalid_credentials', 'The agent key that this address was issued to has expired or was revoked.', {
    advice: 'Read the session with another agent key of the application to get a new address.',
  });
