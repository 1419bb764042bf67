// Seals the memory items of a consumer with a key in the vault that belongs to this consumer. After that key is
// destroyed, copies of the items cannot be opened without a backup of the key.
import type { MemoryRow } from '../../engines/store/rows/consumer-memory.ts';
import type { Vault } from '../../engines/vault/vault.ts';
import { parseJson } from '../../kit/foreign.ts';
import type { ConsumerId } from '../../kit/ids.ts';
import type { Json } from '../../kit/json.ts';

type SealPosition = Pick<MemoryRow, 'key' | 'version'>;

/** Seals and opens the memory items of one consumer. */
export interface MemorySealer {
  seal(at: SealPosition, json: string): Buffer;
  open(row: SealPosition & Pick<MemoryRow, 'sealed'>): Json;
}

export class SealedMemory {
  readonly #vault: Pick<Vault, 'of' | 'destroy'>;

  constructor(vault: Pick<Vault, 'of' | 'destroy'>) {
    this.#vault = vault;
  }

  /**
   * Returns the functions that seal and open the memory of a consumer. Call this method before a transaction, because
   * it may have to fetch the key.
   */
  async of(consumerId: ConsumerId): Promise<MemorySealer> {
    const vault = await this.#vault.of(consumerId);
    return {
      seal: (at, json) => vault.seal(placeOf(at), Buffer.from(json)),
      open: row => parseJson(vault.open(placeOf(row), row.sealed).reveal()) as Json, // The value was sealed by `seal`.
    };
  }

  destroy(consumer: ConsumerId): Promise<void> {
    return this.#vault.destroy(consumer);
  }
}

const placeOf = ({ key, version }: SealPosition) => ({ kind: 'memory', id: key, version });
