// Seals data that must not be readable in the database, with a data key for each application and each consumer, and one
// for the installation. Each stored data key is wrapped by the master key. Sealed data can be opened only with the
// owner, kind, id and version for which it was sealed.
import type { Clock } from '../../kit/clock.ts';
import { Fault } from '../../kit/fault.ts';
import type { Secret } from '../../kit/secret.ts';
import { type Key, newKey, open, seal } from './envelope.ts';
import type { MasterKey, MasterKeySource } from './master-key.ts';
import { type DataKeyRow, type DataKeyRows, INSTALLATION_ID } from './rows.ts';

/** Identifies the row and the version to which sealed data is bound. */
export interface SealBinding {
  /** The id of an application or a consumer, or INSTALLATION_ID. */
  readonly owner: string;
  readonly kind: string;
  readonly id: string;
  /**
   * The version of the value. Data that was sealed for an earlier version cannot be opened as the current version, so
   * an earlier value cannot be restored by changing the database.
   */
  readonly version: number;
}

/** Seals and opens the data of one owner. */
export interface OwnerVault {
  seal(place: Omit<SealBinding, 'owner'>, plain: Uint8Array): Buffer;
  open(place: Omit<SealBinding, 'owner'>, sealed: Buffer): Secret<Buffer>;
}

export interface VaultParts {
  readonly rows: DataKeyRows;
  readonly masterKeys: MasterKeySource;
  readonly clock: Clock;
}

const CACHED_KEYS_MAX = 1_000;
/** The maximum number of attempts to create a data key. An attempt fails if the master key is changed meanwhile. */
const CREATE_ATTEMPTS_MAX = 3;

export class Vault {
  readonly #parts: VaultParts;
  #masterKeyById: ReadonlyMap<string, MasterKey>;
  /** Cached data keys by owner, in the order in which they were added. */
  readonly #dataKeyByOwner = new Map<string, Key>();
  /** The number of data keys that this process has destroyed. */
  #destroyedCount = 0;

  private constructor(parts: VaultParts, initialKeys: readonly MasterKey[]) {
    this.#parts = parts;
    this.#masterKeyById = byId(initialKeys);
  }

  /** @throws Fault `master_key_wrong` if the database was used with another master key. */
  static async open(parts: VaultParts): Promise<Vault> {
    const { rows, masterKeys, clock } = parts;
    const existingRow = await rows.get(INSTALLATION_ID);
    const availableKeys = await masterKeys.read({ isFirst: !existingRow });
    const vault = new Vault(parts, availableKeys);
    const [firstMasterKey] = availableKeys;
    if (!firstMasterKey) throw new Error(`${masterKeys.name} supplied no master key`);
    const row = existingRow ?? (await rows.insertFirst(wrap(INSTALLATION_ID, newKey(), firstMasterKey, clock.now())));
    vault.#dataKeyByOwner.set(INSTALLATION_ID, await vault.#unwrap(row));
    if (availableKeys.length > 1) await forgetUnusedMasterKeys(parts);
    return vault;
  }

  async seal(place: SealBinding, plain: Uint8Array): Promise<Buffer> {
    return seal(await this.#keyOf(place.owner), plain, associatedDataOf(place));
  }

  async open(place: SealBinding, sealed: Buffer): Promise<Secret<Buffer>> {
    return open(await this.#keyOf(place.owner, { mayCreate: false }), sealed, associatedDataOf(place));
  }

  /**
   * Returns the vault of one owner, with the data key already fetched. Call this before a transaction begins: a
   * transaction that fetched the key would need a second connection of the pool, and transactions that each hold one
   * connection and wait for another would block each other.
   */
  async of(owner: string): Promise<OwnerVault> {
    const key = await this.#keyOf(owner);
    return {
      seal: (place, plain) => seal(key, plain, associatedDataOf({ owner, ...place })),
      open: (place, sealed) => open(key, sealed, associatedDataOf({ owner, ...place })),
    };
  }

  /** Destroys the data key of an owner. Other processes may keep the key in memory until they restart. */
  async destroy(owner: string): Promise<void> {
    this.#dataKeyByOwner.delete(owner);
    await this.#parts.rows.remove(owner);
    // The key may have been fetched again before its row was removed.
    this.#dataKeyByOwner.delete(owner);
    this.#destroyedCount += 1;
  }

  async #keyOf(owner: string, { mayCreate = true } = {}): Promise<Key> {
    const cachedKey = this.#dataKeyByOwner.get(owner);
    if (cachedKey) return cachedKey;
    const destroyedCountBefore = this.#destroyedCount;
    const existingRow = await this.#parts.rows.get(owner);
    if (!existingRow && !mayCreate) throw new Error(`there is no data key for ${owner}`);
    const row = existingRow ?? (await this.#createKey(owner));
    const key = await this.#unwrap(row);
    // Does not cache the key if any key was destroyed since the row was read, because the destroyed key may be this
    // key.
    if (this.#destroyedCount !== destroyedCountBefore) return key;
    this.#dataKeyByOwner.set(owner, key);
    for (const oldestOwner of this.#dataKeyByOwner.keys()) {
      if (this.#dataKeyByOwner.size <= CACHED_KEYS_MAX) break;
      this.#dataKeyByOwner.delete(oldestOwner);
    }
    return key;
  }

  /**
   * Makes a data key and wraps it with the master key in use. Tries again if another process changes the master key at
   * the same time.
   */
  async #createKey(owner: string): Promise<DataKeyRow> {
    const { rows, clock } = this.#parts;
    for (let attempt = 1; attempt <= CREATE_ATTEMPTS_MAX; attempt += 1) {
      const masterKeyId = (await rows.get(INSTALLATION_ID))?.master ?? '';
      const insertedRow = await rows.insert(wrap(owner, newKey(), await this.#masterKeyFor(masterKeyId), clock.now()));
      if (insertedRow) return insertedRow;
    }
    throw new Error(
      `no data key could be created: the master key changed during each of ${CREATE_ATTEMPTS_MAX} attempts`,
    );
  }

  async #unwrap(row: DataKeyRow): Promise<Key> {
    return unwrap(row, await this.#masterKeyFor(row.master));
  }

  /** Reads the master keys again if the id is unknown, because a key may have been added since the last read. */
  async #masterKeyFor(id: string): Promise<MasterKey> {
    const { masterKeys } = this.#parts;
    if (!this.#masterKeyById.has(id)) this.#masterKeyById = byId(await masterKeys.read({ isFirst: false }));
    const masterKey = this.#masterKeyById.get(id);
    if (masterKey) return masterKey;
    throw new Fault('master_key_wrong', `${masterKeys.name} lacks the master key that the database uses.`, {
      advice:
        'Supply that key. To replace it, supply the new key first and then the old key, and run `berth vault rotate`.',
    });
  }
}

/**
 * Replaces the master key in use. Even if the process is killed during the change, all data keys can still be opened.
 */
export async function rotateMasterKey({ rows, masterKeys }: VaultParts): Promise<{ readonly rewrappedCount: number }> {
  let rewrappedCount = 0;
  await rows.change(async existingRows => {
    const installationRow = existingRows.find(({ owner }) => owner === INSTALLATION_ID);
    if (!installationRow)
      throw new Error('the vault has no data key for the installation; start the server once to create it');
    const mastersById = byId(await masterKeys.read({ isFirst: false }));
    const nextMasterKey = await masterKeys.next(installationRow.master);
    rewrappedCount = existingRows.length;
    return existingRows.map(row => {
      const masterKey = mastersById.get(row.master);
      if (!masterKey)
        throw new Fault('master_key_wrong', `${masterKeys.name} lacks a master key that the database uses.`, {
          advice: 'Add the missing key after the new key, and run `berth vault rotate` again.',
        });
      return wrap(row.owner, unwrap(row, masterKey), nextMasterKey, row.createdAt);
    });
  });
  // The old key is needed until the rows are durable.
  await forgetUnusedMasterKeys({ rows, masterKeys });
  return { rewrappedCount };
}

/** Removes the master keys that no row uses, including keys that an interrupted change has left behind. */
const forgetUnusedMasterKeys = ({ rows, masterKeys }: Pick<VaultParts, 'rows' | 'masterKeys'>): Promise<void> =>
  rows.change(async existingRows => {
    await masterKeys.keepOnly(new Set(existingRows.map(({ master }) => master)));
    return [];
  });

const byId = (keys: readonly MasterKey[]): ReadonlyMap<string, MasterKey> => new Map(keys.map(key => [key.id, key]));

const wrap = (owner: string, key: Key, { id, key: wrappingKey }: MasterKey, createdAt: Date): DataKeyRow => ({
  ...{ owner, master: id, createdAt },
  wrapped: seal(wrappingKey, key.reveal(), `data key|${owner}|${id}`),
});

const unwrap = ({ owner, master, wrapped }: DataKeyRow, { key }: MasterKey): Key =>
  open(key, wrapped, `data key|${owner}|${master}`);

/** Throws if a part contains the separator, because two different bindings could then have the same associated data. */
function associatedDataOf({ owner, kind, id, version }: SealBinding): string {
  if ([owner, kind, id].some(part => part.includes('|')))
    throw new Error('cannot seal or open data: its owner, kind or id contains a vertical bar (|)');
  return [owner, kind, id, version].join('|');
}
