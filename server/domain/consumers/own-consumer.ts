// Passkey commands for consumers who are signed in on a page of Berth.
import type { ConsumerPasskeys as PasskeyList } from '../../../contract/consumers.ts';
import type { Store } from '../../engines/store/store.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Secret } from '../../kit/secret.ts';
import type { Audit } from '../audit/audit.ts';
import { byConsumer } from '../audit/by-caller.ts';
import type { ConsumerCaller } from '../identity/caller.ts';
import type { ConsumerChallenge, ConsumerPasskeys } from './consumer-passkeys.ts';
import type { ConsumerSessions } from './consumer-sessions.ts';
import type { Identities } from './identities.ts';

export interface OwnConsumerParts {
  readonly store: Pick<Store, 'consumers'>;
  readonly identities: Identities;
  readonly sessions: ConsumerSessions;
  readonly passkeys: ConsumerPasskeys;
  readonly audit: Pick<Audit, 'record'>;
}

export interface NewCookie {
  readonly secret: Secret;
  readonly seconds: number;
}

export class OwnConsumer {
  readonly #parts: OwnConsumerParts;

  constructor(parts: OwnConsumerParts) {
    this.#parts = parts;
  }

  challenge({ applicationId, consumerId }: ConsumerCaller, origin: URL): Promise<ConsumerChallenge> {
    return this.#parts.passkeys.challenge(applicationId, origin, { consumerId });
  }

  async stepUp(
    caller: ConsumerCaller,
    origin: URL,
    { ticket, response }: { readonly ticket: string; readonly response: JsonObject },
  ): Promise<NewCookie> {
    const { passkeys, sessions, audit } = this.#parts;
    const { applicationId, consumerId } = caller;
    await passkeys.verify(applicationId, origin, ticket, response, { consumerId });
    const cookie = await sessions.recordProof(caller, 'phr');
    await audit.record({ ...byConsumer(caller), action: 'consumer.stepped_up', outcome: 'success' });
    return cookie;
  }

  async listPasskeys({ consumerId }: ConsumerCaller): Promise<PasskeyList> {
    const rows = await this.#parts.passkeys.list(consumerId);
    return {
      data: rows.map(({ id, name, createdAt, lastUsedAt }) => ({
        ...{ id, name, createdAt: createdAt.toISOString() },
        ...(lastUsedAt ? { lastUsedAt: lastUsedAt.toISOString() } : {}),
      })),
    };
  }

  async beginAddingPasskey({ applicationId, consumerId }: ConsumerCaller, origin: URL): Promise<ConsumerChallenge> {
    const { passkeys, identities } = this.#parts;
    const { name } = await identities.requireApplication(applicationId);
    return passkeys.beginAdding(applicationId, consumerId, origin, name);
  }

  /** Adds a passkey. The consumer session then counts as signed in with this passkey, which has just been verified. */
  async addPasskey(
    caller: ConsumerCaller,
    origin: URL,
    request: { readonly ticket: string; readonly name: string; readonly response: JsonObject },
  ): Promise<NewCookie> {
    const { passkeys, sessions, audit } = this.#parts;
    await passkeys.add(caller.applicationId, caller.consumerId, origin, request);
    await audit.record({ ...byConsumer(caller), action: 'consumer.passkey_added', outcome: 'success' });
    await sessions.refreshCaches(caller.consumerId);
    return sessions.recordProof(caller, 'phr');
  }

  async removePasskey(caller: ConsumerCaller, id: string): Promise<void> {
    const { passkeys, sessions, audit } = this.#parts;
    await passkeys.remove(caller.consumerId, id);
    await audit.record({ ...byConsumer(caller), action: 'consumer.passkey_removed', outcome: 'success' });
    await sessions.refreshCaches(caller.consumerId);
  }
}
