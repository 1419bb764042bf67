// Seals the items of the memory with a key of their consumer in the vault. Destroying that key destroys the memory, in
// backups too.
import type { MemoryRow } from '../../engines/store/rows/consumer-memory.ts';
import type { Vault } from '../../engines/vault/vault.ts';
import { parseJson } from '../../kit/foreign.ts';
import type { ConsumerId } from '../../kit/ids.ts';
import type { Json } from '../../kit/json.ts';

type At = Pick<MemoryRow, 'key' | 'version'>;

/** The memory of one consumer. */
export interface MemorySeal {
  seal(at: At, json: string): Buffer;
  open(row: At & Pick<MemoryRow, 'sealed'>): Json;
}

export class SealedMemory {
  readonly #vault: Pick<Vault, 'of' | 'destroy'>;

  constructor(vault: Pick<Vault, 'of' | 'destroy'>) {
    this.#vault = vault;
  }

  /** Returns the seal of a consumer's memory. Call it before a transaction, because it may have to fetch the key. */
  async of(consumerId: ConsumerId): Promise<MemorySeal> {
    const vault = await this.#vault.of(consumerId);
    return {
      seal: (at, json) => vault.seal(placeOf(at), Buffer.from(json)),
      open: row => parseJson(vault.open(placeOf(row), row.sealed).reveal()) as Json, // Sealed by `seal`.
    };
  }

  destroy(consumer: ConsumerId): Promise<void> {
    return this.#vault.destroy(consumer);
  }
}

const placeOf = ({ key, version }: At) => ({ kind: 'memory', id: key, version });
