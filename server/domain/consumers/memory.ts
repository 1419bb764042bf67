// The memory API for consumers: versioned items that agents can read and write, and the consents that allow this.
import { PAGE_LIMIT_DEFAULT } from '../../../contract/common.ts';
import {
  type AgentKeySummary,
  CONSENTS_MAX,
  type Consent,
  type Consents,
  type DeletedItems,
  type DeleteMemory,
  type GiveConsent,
  type ListMemory,
  MEMORY_BYTES_MAX,
  MEMORY_ITEMS_MAX,
  MEMORY_VALUE_BYTES_MAX,
  type MemoryItem,
  type MemoryPage,
  type PutMemory,
} from '../../../contract/consumer-memory.ts';
import type { ConsentRow, MemoryRow } from '../../engines/store/rows/consumer-memory.ts';
import type { KeyRow } from '../../engines/store/rows/credentials.ts';
import type { AtomicTables, Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import { type ApplicationId, type ConsentId, type ConsumerId, isUuid, type KeyId, newId } from '../../kit/ids.ts';
import type { Audit, AuditSource } from '../audit/audit.ts';
import { byConsumer } from '../audit/by-caller.ts';
import { fault, invalidRequest, limitReached, notFound } from '../faults.ts';
import type { ConsumerCaller } from '../identity/caller.ts';
import { parseFutureExpiry, statusOf } from '../identity/credential-rules.ts';
import { type Cursors, type ListName, listPageOf } from '../identity/cursors.ts';
import type { SealedMemory } from './sealed-memory.ts';

const LIMITS = { items: MEMORY_ITEMS_MAX, bytes: MEMORY_BYTES_MAX } as const;
const ALL_AGENTS = '*';

export interface MemoryParts {
  readonly store: Pick<Store, 'consumerMemory' | 'atomically' | 'keys'>;
  readonly sealedMemory: SealedMemory;
  readonly audit: Pick<Audit, 'record'>;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

/** A write to the memory of a consumer, by the consumer or by an agent. */
export interface MemoryWrite extends PutMemory {
  readonly applicationId: ApplicationId;
  readonly consumerId: ConsumerId;
  readonly by: { readonly kind: MemoryRow['updatedByKind']; readonly id: string };
  readonly source: AuditSource;
  /** Called in the transaction, under the lock of the consumer. Throws if the write is not allowed. */
  readonly assertAllowed?: (trx: Pick<AtomicTables, 'consumerMemory'>) => Promise<void>;
}

export class Memory {
  readonly #parts: MemoryParts;

  constructor(parts: MemoryParts) {
    this.#parts = parts;
  }

  async list(
    { consumerId }: ConsumerCaller,
    { prefix = '', cursor, limit = PAGE_LIMIT_DEFAULT }: ListMemory,
  ): Promise<MemoryPage> {
    const { store, cursors } = this.#parts;
    const name: ListName = { list: `memory ${prefix}`, owner: consumerId };
    const afterOption = cursor === undefined ? {} : { after: cursors.read<string>(name, cursor) };
    const rows = await store.consumerMemory.list(consumerId, { prefix, ...afterOption, limit: limit + 1 });
    return listPageOf(
      rows.map(row => ({ id: row.key, row })),
      limit,
      ({ row }) => ({ ...itemMetadata(row), bytes: row.bytes }),
      key => cursors.after(name, key),
    );
  }

  async get({ consumerId }: ConsumerCaller, key: string): Promise<MemoryItem> {
    const row = await this.#parts.store.consumerMemory.get(consumerId, key);
    if (!row) throw notFound('Memory item', key);
    return this.openItem(row);
  }

  async put(caller: ConsumerCaller, input: PutMemory): Promise<MemoryItem> {
    const { applicationId, consumerId } = caller;
    const { applicationId: _, ...source } = byConsumer(caller);
    const by = { kind: 'consumer', id: consumerId } as const;
    const row = await this.write({ ...input, applicationId, consumerId, by, source });
    return { ...itemMetadata(row), value: input.value };
  }

  async delete(caller: ConsumerCaller, { key, prefix }: DeleteMemory): Promise<DeletedItems> {
    if ((key === undefined) === (prefix === undefined))
      throw invalidRequest([{ path: '', message: 'Exactly one of `key` and `prefix` is required.' }]);
    const { store, audit } = this.#parts;
    const deletedCount = await store.atomically(async trx => {
      const selector = key === undefined ? { prefix: prefix ?? '' } : { key };
      const { length } = await trx.consumerMemory.remove(caller.consumerId, selector);
      const entry = { action: 'memory.deleted', outcome: 'success', details: { items: length } } as const;
      if (length > 0) await audit.record({ ...byConsumer(caller), ...entry }, trx);
      return length;
    });
    if (deletedCount === 0 && key !== undefined) throw notFound('Memory item', key);
    return { deleted: deletedCount };
  }

  async giveConsent(caller: ConsumerCaller, { keyId, keys, access, expiresAt }: GiveConsent): Promise<Consent> {
    const { store, audit, clock } = this.#parts;
    const now = clock.now();
    const agentKey = keyId === ALL_AGENTS ? undefined : await this.#requireAgentKey(caller.applicationId, keyId);
    const expiry = parseFutureExpiry(expiresAt, now);
    const row: ConsentRow = {
      ...{ id: newId<ConsentId>(now), consumerId: caller.consumerId, patterns: keys, access, createdAt: now },
      ...(agentKey ? { keyId: agentKey.id } : {}),
      ...(expiry ? { expiresAt: expiry } : {}),
    };
    await store.atomically(async trx => {
      const outcome = await trx.consumerMemory.insertConsent(row, CONSENTS_MAX, now);
      if (outcome === 'gone') throw notFound('Consumer', caller.consumerId);
      if (outcome === 'limit_reached')
        throw limitReached('consents of this consumer', CONSENTS_MAX, 'Withdraw one that is no longer needed.');
      const details = { keyId, access, patterns: keys.length };
      const entry = { action: 'memory.consented', outcome: 'success', details, target: targetOf(row) } as const;
      await audit.record({ ...byConsumer(caller), ...entry }, trx);
    });
    return consentView(row, agentKey?.name);
  }

  async consents({ applicationId, consumerId }: ConsumerCaller): Promise<Consents> {
    const { store, clock } = this.#parts;
    const rows = await store.consumerMemory.consents(consumerId, clock.now());
    const consentViews = rows.map(async row => {
      const key = row.keyId && (await store.keys.get(applicationId, row.keyId));
      return consentView(row, key?.name);
    });
    return { data: await Promise.all(consentViews) };
  }

  async withdrawConsent(caller: ConsumerCaller, id: string): Promise<Consents> {
    const { store, audit, clock } = this.#parts;
    await store.atomically(async trx => {
      const consentId = id as ConsentId; // The schema requires a UUID.
      if (!(await trx.consumerMemory.revokeConsent(caller.consumerId, consentId, clock.now())))
        throw notFound('Consent', id);
      const entry = {
        action: 'memory.consent_revoked',
        outcome: 'success',
        target: targetOf({ id: consentId }),
      } as const;
      await audit.record({ ...byConsumer(caller), ...entry }, trx);
    });
    return this.consents(caller);
  }

  /** Returns the id and the name of an agent key, for the page that requests consent. */
  async agent({ applicationId }: ConsumerCaller, keyId: string): Promise<AgentKeySummary> {
    const { id, name } = await this.#requireAgentKey(applicationId, keyId);
    return { keyId: id, name };
  }

  async write({
    applicationId,
    consumerId,
    key,
    value,
    ifVersion,
    by,
    source,
    ...options
  }: MemoryWrite): Promise<MemoryRow> {
    const { store, sealedMemory, audit, clock } = this.#parts;
    const json = JSON.stringify(value);
    const bytes = Buffer.byteLength(json);
    if (bytes > MEMORY_VALUE_BYTES_MAX)
      throw invalidRequest([{ path: 'value', message: `is larger than ${MEMORY_VALUE_BYTES_MAX / 1024} KiB as JSON` }]);
    const sealer = await sealedMemory.of(consumerId);
    return store.atomically(async trx => {
      const version = await trx.consumerMemory.nextVersion(consumerId);
      if (version === undefined) throw notFound('Consumer', consumerId);
      await options.assertAllowed?.(trx);
      const row: MemoryRow = {
        ...{ consumerId, key, version, bytes, sealed: sealer.seal({ key, version }, json) },
        ...{ updatedAt: clock.now(), updatedByKind: by.kind, updatedById: by.id },
      };
      const outcome = await trx.consumerMemory.put(row, ifVersion, LIMITS);
      if (outcome === 'limit_reached') throw memoryFull();
      if (outcome !== 'written') throw versionConflict(key, outcome.version);
      const target = { kind: 'consumer', id: consumerId };
      const entry = { action: 'memory.written', outcome: 'success', target, details: { version } } as const;
      await audit.record({ ...source, applicationId, ...entry }, trx);
      return row;
    });
  }

  async openItem(row: MemoryRow): Promise<MemoryItem> {
    return { ...itemMetadata(row), value: (await this.#parts.sealedMemory.of(row.consumerId)).open(row) };
  }

  async #requireAgentKey(application: ApplicationId, keyId: string): Promise<KeyRow> {
    const { store, clock } = this.#parts;
    const key = isUuid(keyId) ? await store.keys.get(application, keyId as KeyId) : undefined;
    if (!key || statusOf(key, clock.now()) !== 'active') throw notFound('Agent key', keyId);
    return key;
  }
}

export const itemMetadata = ({ key, version, updatedAt, updatedByKind, updatedById }: MemoryRow) => ({
  ...{ key, version, updatedAt: updatedAt.toISOString(), updatedBy: { kind: updatedByKind, id: updatedById } },
});

const consentView = ({ id, keyId, patterns, access, createdAt, expiresAt }: ConsentRow, agent?: string): Consent => ({
  ...{ id, keyId: keyId ?? ALL_AGENTS, keys: [...patterns], access, createdAt: createdAt.toISOString() },
  ...(agent === undefined ? {} : { agent }),
  ...(expiresAt ? { expiresAt: expiresAt.toISOString() } : {}),
});

const targetOf = ({ id }: Pick<ConsentRow, 'id'>) => ({ kind: 'consent', id });

const memoryFull = (): Error =>
  fault(
    'limit_reached',
    `The memory of this consumer would exceed ${MEMORY_ITEMS_MAX} items or ${MEMORY_BYTES_MAX / 1_048_576} MiB.`,
    {
      advice: 'Delete items that are no longer needed.',
      details: { limit: MEMORY_ITEMS_MAX, bytes: MEMORY_BYTES_MAX },
    },
  );

const versionConflict = (key: string, version: number): Error =>
  fault('revision_conflict', `The current version of the item ${key} is ${version}. Nothing was written.`, {
    advice: 'Read the item again, and send its version as ifVersion, or omit ifVersion.',
    details: { version },
  });
