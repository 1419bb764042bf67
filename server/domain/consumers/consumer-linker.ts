// Merges two consumers into one, if one person has recently signed in as both. A shared e-mail address is never a
// reason to merge consumers.
import { MEMORY_BYTES_MAX, MEMORY_ITEMS_MAX } from '../../../contract/consumer-memory.ts';
import { CONSUMER_PASSKEYS_MAX, type ConsumerProfile } from '../../../contract/consumers.ts';
import type { AtomicTables, Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { ConsumerId } from '../../kit/ids.ts';
import type { Audit } from '../audit/audit.ts';
import { byConsumer } from '../audit/by-caller.ts';
import { fault } from '../faults.ts';
import type { ConsumerCaller } from '../identity/caller.ts';
import { recognize } from '../identity/credentials.ts';
import { assertSteppedUp } from '../identity/step-up.ts';
import type { ConsumerSessions } from './consumer-sessions.ts';
import { invalidGrant } from './faults.ts';
import type { Profiles } from './profiles.ts';
import type { MemorySealer, SealedMemory } from './sealed-memory.ts';

const MEMORY_LIMITS = { items: MEMORY_ITEMS_MAX, bytes: MEMORY_BYTES_MAX } as const;
const ALL_ITEMS = { prefix: '', limit: MEMORY_ITEMS_MAX } as const;

export interface ConsumerLinkerParts {
  readonly store: Pick<Store, 'consumerSessions' | 'consumerPasskeys' | 'consumerMemory' | 'atomically'>;
  readonly sessions: Pick<ConsumerSessions, 'endAllOf' | 'refreshCaches'>;
  readonly profiles: Pick<Profiles, 'read'>;
  readonly sealedMemory: SealedMemory;
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
}

const notAnotherConsumer = (): Error =>
  invalidGrant(
    'access token',
    'The token must belong to another consumer of this application: sign in as that consumer, and send the access token of that session.',
  );

export class ConsumerLinker {
  readonly #parts: ConsumerLinkerParts;

  constructor(parts: ConsumerLinkerParts) {
    this.#parts = parts;
  }

  /**
   * Merges the consumer of `accessToken` into the calling consumer. The sign-ins of both then lead to the calling
   * consumer.
   */
  async link(caller: ConsumerCaller, accessToken: string): Promise<ConsumerProfile> {
    const { store, sessions, profiles, sealedMemory, audit } = this.#parts;
    const { applicationId, consumerId } = caller;
    const otherConsumerId = await this.#requireOtherConsumer(caller, accessToken);
    await this.#assertPasskeyLimit(consumerId, otherConsumerId);
    const sealers = { from: await sealedMemory.of(otherConsumerId), to: await sealedMemory.of(consumerId) };
    await store.atomically(async trx => {
      if (!(await trx.consumers.link(applicationId, { from: otherConsumerId, to: consumerId })))
        throw invalidGrant('access token');
      await moveMemory(trx, { from: otherConsumerId, to: consumerId, sealers });
      await sessions.endAllOf(otherConsumerId, trx);
      const target = { kind: 'consumer', id: otherConsumerId };
      await audit.record({ ...byConsumer(caller), action: 'consumer.linked', outcome: 'success', target }, trx);
    });
    await sealedMemory.destroy(otherConsumerId);
    await sessions.refreshCaches(consumerId); // The consumer may be able to give a stronger proof now.
    return profiles.read(caller);
  }

  /**
   * Returns the consumer to whom the token belongs. The consumer must belong to this application, must not be the
   * caller, and must have recently given the strongest proof of identity that they can give.
   */
  async #requireOtherConsumer({ applicationId, consumerId }: ConsumerCaller, accessToken: string): Promise<ConsumerId> {
    const { store, clock } = this.#parts;
    const credential = recognize(accessToken);
    const isSessionToken = credential?.kind === 'consumer_session';
    const row = isSessionToken ? await store.consumerSessions.byHash(credential.hash) : undefined;
    const now = clock.now();
    if (!row || row.revokedAt || row.expiresAt <= now) throw notAnotherConsumer();
    if (row.applicationId !== applicationId || row.consumerId === consumerId) throw notAnotherConsumer();
    const { id, acr, authTime, strongestAcr, expiresAt } = row;
    const via = { kind: 'consumer_session', id, acr, authTime, strongestAcr, expiresAt } as const;
    assertSteppedUp({ kind: 'consumer', via }, now);
    return row.consumerId;
  }

  async #assertPasskeyLimit(ownConsumer: ConsumerId, otherConsumer: ConsumerId): Promise<void> {
    const { consumerPasskeys } = this.#parts.store;
    const [ownPasskeys, otherPasskeys] = await Promise.all([
      consumerPasskeys.list(ownConsumer),
      consumerPasskeys.list(otherConsumer),
    ]);
    if (ownPasskeys.length + otherPasskeys.length > CONSUMER_PASSKEYS_MAX)
      throw tooManyTogether('passkeys', CONSUMER_PASSKEYS_MAX);
  }
}

interface MemoryMove {
  readonly from: ConsumerId;
  readonly to: ConsumerId;
  readonly sealers: { readonly from: MemorySealer; readonly to: MemorySealer };
}

/**
 * Moves the memory items of `from` to `to`, and seals each item again with the key of `to`. Fails if both consumers
 * have an item with the same key, so that neither value is lost.
 */
async function moveMemory(
  { consumerMemory }: Pick<AtomicTables, 'consumerMemory'>,
  { from, to, sealers }: MemoryMove,
): Promise<void> {
  const sharedKeys: string[] = [];
  for (const item of await consumerMemory.list(from, ALL_ITEMS)) {
    const { key } = item;
    const version = (await consumerMemory.nextVersion(to)) ?? 0;
    const sealedValue = sealers.to.seal({ key, version }, JSON.stringify(sealers.from.open(item)));
    const outcome = await consumerMemory.put(
      { ...item, consumerId: to, version, sealed: sealedValue },
      0,
      MEMORY_LIMITS,
    );
    if (outcome === 'limit_reached') throw tooManyTogether('memory items', MEMORY_ITEMS_MAX);
    if (outcome !== 'written') sharedKeys.push(key);
  }
  if (sharedKeys.length > 0) throw duplicateKeys(sharedKeys);
  await consumerMemory.remove(from, { prefix: '' });
}

const tooManyTogether = (kind: string, limit: number): Error =>
  fault('limit_reached', `Together, the two consumers exceed the limit of ${limit} ${kind}.`, {
    advice: `Remove ${kind} that are no longer needed, and link the consumers again.`,
    details: { limit },
  });

const LISTED_KEYS_MAX = 20;

const duplicateKeys = (keys: readonly string[]): Error =>
  fault(
    'name_taken',
    `Both consumers have memory items with the same keys: ${keys.slice(0, LISTED_KEYS_MAX).join(', ')}. Nothing was linked.`,
    {
      advice: 'For each key, delete one of the two items with memory.delete. Then link again.',
      details: { keys: keys.slice(0, LISTED_KEYS_MAX) },
    },
  );
