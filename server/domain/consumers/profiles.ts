// Reads and changes the profile of a consumer, and deletes the consumer.
import { CONSUMER_METADATA_BYTES_MAX, type ConsumerProfile, type UpdateProfile } from '../../../contract/consumers.ts';
import type { ConsumerRow } from '../../engines/store/rows/consumers.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { ConsumerId } from '../../kit/ids.ts';
import { cancelActionsOfEndUser } from '../actions/withdrawing.ts';
import type { Audit } from '../audit/audit.ts';
import { byConsumer } from '../audit/by-caller.ts';
import { invalidRequest, notFound } from '../faults.ts';
import type { ConsumerCaller } from '../identity/caller.ts';
import { cleanName } from '../identity/names.ts';
import { type ConsumerSessions, consumerIdentityOf } from './consumer-sessions.ts';

export interface ProfilesParts {
  readonly store: Pick<Store, 'consumers' | 'atomically'>;
  readonly sessions: ConsumerSessions;
  readonly audit: Pick<Audit, 'record'>;
  readonly clock: Clock;
  /** Destroys the key that seals the memory of the consumer. */
  readonly destroyKey: (consumer: ConsumerId) => Promise<void>;
}

export class Profiles {
  readonly #parts: ProfilesParts;

  constructor(parts: ProfilesParts) {
    this.#parts = parts;
  }

  async read({ applicationId, consumerId }: ConsumerCaller): Promise<ConsumerProfile> {
    const row = await this.#parts.store.consumers.get(applicationId, consumerId);
    if (!row) throw notFound('Consumer', consumerId);
    const [, ...linkedNames] = await this.#parts.store.consumers.namesOf(applicationId, consumerId);
    return { ...profileOf(row), ...(linkedNames.length > 0 ? { linked: linkedNames } : {}) };
  }

  async update(caller: ConsumerCaller, change: UpdateProfile): Promise<ConsumerProfile> {
    const { store, audit } = this.#parts;
    const checkedFields = requireValidChange(change);
    await store.atomically(async trx => {
      const row = await trx.consumers.change(caller.applicationId, caller.consumerId, checkedFields);
      if (!row) throw notFound('Consumer', caller.consumerId);
      const details = { fields: Object.keys(change) };
      const entry = { action: 'consumer.profile_changed', outcome: 'success', details } as const;
      await audit.record({ ...byConsumer(caller), ...entry }, trx);
    });
    return this.read(caller);
  }

  /**
   * Deletes the consumer. The key of the memory is deleted in the same transaction as the rows, so that copies of the
   * rows cannot be opened without a backup of the key. The key is destroyed again afterwards, because process memory
   * also contains the key, and because a concurrent write may have created another key.
   */
  async delete(caller: ConsumerCaller): Promise<void> {
    const { store, audit, clock, sessions, destroyKey } = this.#parts;
    const { applicationId, consumerId } = caller;
    const now = clock.now();
    await store.atomically(async trx => {
      const names = await trx.consumers.erase(applicationId, consumerId, now);
      if (names.length === 0) throw notFound('Consumer', consumerId);
      const { applicationId: _, ...source } = byConsumer(caller);
      await sessions.endAllOf(consumerId, trx);
      for (const name of names) await cancelActionsOfEndUser(trx, { applicationId, ...name }, { audit, source, now });
      await audit.record({ ...byConsumer(caller), action: 'consumer.deleted', outcome: 'success' }, trx);
    });
    await destroyKey(consumerId);
  }
}

function requireValidChange({ displayName, locale, timezone, metadata }: UpdateProfile): UpdateProfile {
  const issues = [
    ...(locale === undefined || isLocale(locale)
      ? []
      : [{ path: 'locale', message: 'is not a language tag; expected a tag such as en-GB' }]),
    ...(timezone === undefined || isTimezone(timezone)
      ? []
      : [{ path: 'timezone', message: 'is not a time zone; expected a name such as Europe/Berlin' }]),
    ...(metadata === undefined || Buffer.byteLength(JSON.stringify(metadata)) <= CONSUMER_METADATA_BYTES_MAX
      ? []
      : [{ path: 'metadata', message: `is larger than ${CONSUMER_METADATA_BYTES_MAX} bytes` }]),
  ];
  if (issues.length > 0) throw invalidRequest(issues);
  return {
    ...(displayName === undefined ? {} : { displayName: cleanName(displayName) }),
    ...(locale === undefined ? {} : { locale }),
    ...(timezone === undefined ? {} : { timezone }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

const isLocale = (text: string): boolean => doesNotThrow(() => Intl.getCanonicalLocales(text));

const isTimezone = (text: string): boolean =>
  doesNotThrow(() => new Intl.DateTimeFormat('en', { timeZone: text }).format(0));

/** Returns false if the call throws, as Intl does for values that it does not support. */
function doesNotThrow(construct: () => unknown): boolean {
  try {
    construct();
    return true;
  } catch {
    return false;
  }
}

const profileOf = (row: ConsumerRow): ConsumerProfile => ({
  ...consumerIdentityOf(row),
  ...(row.email === undefined ? {} : { email: row.email }),
  ...(row.displayName === undefined ? {} : { displayName: row.displayName }),
  ...(row.locale === undefined ? {} : { locale: row.locale }),
  ...(row.timezone === undefined ? {} : { timezone: row.timezone }),
  ...(row.metadata === undefined ? {} : { metadata: row.metadata }),
});
