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
const CACHE_MAX_AGE_MS = 30_000;
/** Maximum number of cached keys without open connections. */
const CACHE_SIZE_MAX = 1_000;

/** The key that a caller used, or the key to which a connect or live view address was issued. */
export interface UsedKey {
  readonly applicationId: ApplicationId;
  readonly keyId: KeyId;
}

interface CachedKey extends UsedKey {
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
  readonly #cachedKeys = new Map<KeyId, CachedKey>();
  /** Incremented by each change of a key. A row that was read before a change is not used afterwards. */
  #changeCount = 0;

  constructor(parts: KeyUsesParts) {
    this.#parts = parts;
  }

  /** Rejects with 401 if the key is not active. */
  async assertActive(key: UsedKey): Promise<void> {
    const cachedKey = this.#cachedKeyOf(key);
    const isKnown =
      cachedKey.row && !cachedKey.isStale && this.#parts.clock.monotonicMs() - cachedKey.readAtMs < CACHE_MAX_AGE_MS;
    if (!isKnown) await this.#read(cachedKey);
    if (!this.#isActive(cachedKey)) throw keyEnded();
  }

  /** Calls `end` once, when the key expires or is revoked. If this has already happened, calls `end` at once. */
  hold(key: UsedKey, end: () => void): Closeable {
    const cachedKey = this.#cachedKeyOf(key);
    cachedKey.endListeners.add(end);
    if (!cachedKey.row) cachedKey.isStale = true;
    void this.reconcile();
    return { close: () => void cachedKey.endListeners.delete(end) };
  }

  /**
   * Called when a key has changed, expired or been revoked. With `shouldKeepConnections`, the open connections of the
   * key stay open.
   */
  handleChange(hash: string, shouldKeepConnections: boolean): void {
    this.#changeCount += 1;
    for (const cachedKey of this.#cachedKeys.values()) {
      if (cachedKey.row && cachedKey.row.hash.toString('hex') !== hash) continue;
      cachedKey.isStale = true;
      if (shouldKeepConnections && cachedKey.row) cachedKey.endListeners.clear();
    }
    void this.reconcile();
  }

  /** Called when notices of changes may have been missed. */
  invalidateAll(): void {
    this.#changeCount += 1;
    for (const cachedKey of this.#cachedKeys.values()) cachedKey.isStale = true;
    void this.reconcile();
  }

  /**
   * Closes the connections of keys that are no longer active. If a key cannot be read now, the next call tries again.
   */
  async reconcile(): Promise<{ ended: number }> {
    let endedCount = 0;
    for (const cachedKey of [...this.#cachedKeys.values()]) {
      if (cachedKey.endListeners.size === 0) continue;
      if (cachedKey.isStale)
        await this.#read(cachedKey).catch(error => this.#parts.log.warn('key.not_read', { reason: reason(error) }));
      if (!cachedKey.isStale && !this.#isActive(cachedKey)) endedCount += this.#end(cachedKey);
    }
    return { ended: endedCount };
  }

  async #read(cachedKey: CachedKey): Promise<void> {
    const previousChangeCount = this.#changeCount;
    cachedKey.row = await this.#parts.store.keys.get(cachedKey.applicationId, cachedKey.keyId);
    cachedKey.readAtMs = this.#parts.clock.monotonicMs();
    cachedKey.isStale = previousChangeCount !== this.#changeCount;
    if (cachedKey.isStale) return this.#read(cachedKey);
  }

  #isActive({ row }: CachedKey): boolean {
    return row !== undefined && statusOf(row, this.#parts.clock.now()) === 'active';
  }

  #end(cachedKey: CachedKey): number {
    const listeners = [...cachedKey.endListeners];
    cachedKey.endListeners.clear();
    for (const end of listeners) end();
    return listeners.length;
  }

  #cachedKeyOf({ applicationId, keyId }: UsedKey): CachedKey {
    const existingKey = this.#cachedKeys.get(keyId);
    if (existingKey) return existingKey;
    if (this.#cachedKeys.size >= CACHE_SIZE_MAX) this.#forgetUnused();
    const cachedKey: CachedKey = {
      applicationId,
      keyId,
      endListeners: new Set(),
      row: undefined,
      readAtMs: 0,
      isStale: true,
    };
    this.#cachedKeys.set(keyId, cachedKey);
    return cachedKey;
  }

  #forgetUnused(): void {
    for (const [id, { endListeners: listeners }] of this.#cachedKeys)
      if (listeners.size === 0) this.#cachedKeys.delete(id);
  }
}

const keyEnded = (): Error =>
  fault('invalid_credentials', 'The agent key that this connectUrl was issued to has expired or was revoked.', {
    advice: 'Read the session with another agent key of the application to get a new connectUrl.',
  });
