// Items of the memory in the vault, sealed with a key of their consumer: whoever destroys it has destroyed the memory, in backups too.
import type { MemoryRow } from '../../engines/store/rows/consumer-memory.ts';
import type { Vault } from '../../engines/vault/vault.ts';
import { parseJson } from '../../kit/foreign.ts';
import type { ConsumerId } from '../../kit/ids.ts';
import type { Json } from '../../kit/json.ts';

type At = Pick<MemoryRow, 'consumerId' | 'key' | 'version'>;

export class SealedMemory {
  readonly #vault: Pick<Vault, 'seal' | 'open' | 'destroy'>;

  constructor(vault: Pick<Vault, 'seal' | 'open' | 'destroy'>) {
    this.#vault = vault;
  }

  /** Fetches the key of the consumer, so that a transaction does not wait for it. */
  async prepare(consumerId: ConsumerId): Promise<void> {
    await this.#vault.seal(placeOf({ consumerId, key: '-', version: 0 }), Buffer.alloc(0));
  }

  seal(at: At, json: string): Promise<Buffer> {
    return this.#vault.seal(placeOf(at), Buffer.from(json));
  }

  async open(row: At & Pick<MemoryRow, 'sealed'>): Promise<Json> {
    return parseJson((await this.#vault.open(placeOf(row), row.sealed)).reveal()) as Json; // Sealed by `seal`.
  }

  destroy(consumer: ConsumerId): Promise<void> {
    return this.#vault.destroy(consumer);
  }
}

const placeOf = ({ consumerId, key, version }: At) => ({ owner: consumerId, kind: 'memory', id: key, version });
