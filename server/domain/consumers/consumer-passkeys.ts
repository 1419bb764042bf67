// Passkeys of consumers. They are bound to the host name of this service. Each passkey belongs to one application.
import { CONSUMER_PASSKEYS_MAX } from '../../../contract/consumers.ts';
import type { ConsumerPasskeyRow, ConsumerTicketRow } from '../../engines/store/rows/consumers.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import {
  type ApplicationId,
  type ConsumerId,
  type ConsumerPasskeyId,
  type ConsumerSignInId,
  type ConsumerTicketId,
  isUuid,
  newId,
} from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import { limitReached, notFound } from '../faults.ts';
import { cleanName } from '../identity/names.ts';
import { signInFailed } from '../people/faults.ts';
import { type PasskeysParts, partyOf } from '../people/passkeys.ts';

const CHALLENGE_LIFETIME_MS = 300_000;
/** A challenge allows one attempt. */
const TRIES_MAX = 1;

export interface ConsumerChallenge {
  readonly ticket: string;
  readonly publicKey: JsonObject;
}

export interface ConsumerPasskeysParts {
  readonly store: Pick<Store, 'consumers' | 'consumerPasskeys' | 'consumerTickets'>;
  readonly webauthn: PasskeysParts['webauthn'];
  readonly clock: Clock;
}

/** What a challenge belongs to: one consumer, or a sign-in, which accepts any passkey of the application. */
export type ChallengeOwner = { readonly signInId: ConsumerSignInId } | { readonly consumerId: ConsumerId };

export class ConsumerPasskeys {
  readonly #parts: ConsumerPasskeysParts;

  constructor(parts: ConsumerPasskeysParts) {
    this.#parts = parts;
  }

  async challenge(application: ApplicationId, origin: URL, owner: ChallengeOwner): Promise<ConsumerChallenge> {
    const { store, webauthn } = this.#parts;
    const allowedPasskeys = 'consumerId' in owner ? await store.consumerPasskeys.list(owner.consumerId) : [];
    return this.#createTicket(
      application,
      owner,
      await webauthn.authenticationChallenge(partyOf(origin), allowedPasskeys),
    );
  }

  /** Returns the consumer whose passkey signed the challenge. */
  async verify(
    application: ApplicationId,
    origin: URL,
    ticket: string,
    response: JsonObject,
    owner: ChallengeOwner,
  ): Promise<ConsumerId> {
    const challenge = await this.#takeTicket(application, ticket, owner);
    const assertion = this.#parts.webauthn.readAuthentication(response);
    const passkey = assertion && (await this.#find(application, assertion.id));
    if (!passkey || ('consumerId' in owner && passkey.consumerId !== owner.consumerId)) throw signInFailed('passkey');
    const { webauthn, store, clock } = this.#parts;
    const counter = await webauthn.verifyAuthentication(partyOf(origin), challenge, assertion, passkey);
    if (counter === undefined || !(await store.consumerPasskeys.recordUse(passkey.id, counter, clock.now())))
      throw signInFailed('passkey');
    return passkey.consumerId;
  }

  async beginAdding(application: ApplicationId, consumer: ConsumerId, origin: URL, userName: string) {
    const { store, webauthn } = this.#parts;
    const row = await store.consumers.get(application, consumer);
    if (!row) throw notFound('Consumer', consumer);
    const name = row.displayName ?? row.email ?? row.subject;
    const passkeyUser = { id: row.id, email: `${row.email ?? name} (${userName})`, name };
    const existingPasskeys = await store.consumerPasskeys.list(consumer);
    const challenge = await webauthn.registrationChallenge(partyOf(origin), passkeyUser, existingPasskeys);
    return this.#createTicket(application, { consumerId: consumer }, challenge);
  }

  async add(
    application: ApplicationId,
    consumerId: ConsumerId,
    origin: URL,
    request: { readonly ticket: string; readonly name: string; readonly response: JsonObject },
  ): Promise<void> {
    const { store, webauthn, clock } = this.#parts;
    const name = cleanName(request.name);
    const challenge = await this.#takeTicket(application, request.ticket, { consumerId });
    const registration = webauthn.readRegistration(request.response);
    const passkey = registration && (await webauthn.verifyRegistration(partyOf(origin), challenge, registration));
    if (!passkey) throw signInFailed('passkey');
    const now = clock.now();
    const row = { id: newId<ConsumerPasskeyId>(now), consumerId, name, createdAt: now, ...passkey };
    const outcome = await store.consumerPasskeys.insert(row, CONSUMER_PASSKEYS_MAX);
    if (outcome === 'limit_reached') throw limitReached('passkeys of this consumer', CONSUMER_PASSKEYS_MAX);
    if (outcome === 'exists') throw signInFailed('passkey');
  }

  list(consumer: ConsumerId): Promise<ConsumerPasskeyRow[]> {
    return this.#parts.store.consumerPasskeys.list(consumer);
  }

  async remove(consumer: ConsumerId, id: string): Promise<void> {
    const passkey = id.toLowerCase() as ConsumerPasskeyId; // Checked by isUuid.
    if (!isUuid(passkey) || !(await this.#parts.store.consumerPasskeys.remove(consumer, passkey)))
      throw notFound('Passkey', id);
  }

  #find(application: ApplicationId, credentialId: string): Promise<ConsumerPasskeyRow | undefined> {
    return this.#parts.store.consumerPasskeys.byCredential(application, Buffer.from(credentialId, 'base64url'));
  }

  async #createTicket(
    applicationId: ApplicationId,
    owner: ChallengeOwner,
    { challenge, publicKey }: { readonly challenge: string; readonly publicKey: object },
  ): Promise<ConsumerChallenge> {
    const now = this.#parts.clock.now();
    const id = newId<ConsumerTicketId>(now);
    const row: ConsumerTicketRow = {
      ...{
        id,
        kind: 'passkey',
        applicationId,
        challenge,
        createdAt: now,
        expiresAt: addMs(now, CHALLENGE_LIFETIME_MS),
      },
      ...owner,
    };
    await this.#parts.store.consumerTickets.insert(row);
    // The library returns options that are sent as JSON.
    return { ticket: id, publicKey: publicKey as JsonObject };
  }

  /** Returns the challenge and marks it as used, so that it cannot be used again. */
  async #takeTicket(application: ApplicationId, ticket: string, owner: ChallengeOwner): Promise<string> {
    const { store, clock } = this.#parts;
    const now = clock.now();
    const id = ticket.toLowerCase() as ConsumerTicketId; // Checked by isUuid.
    const row = isUuid(id)
      ? await store.consumerTickets.attempt(application, id, 'passkey', now, TRIES_MAX)
      : undefined;
    const isOwner = 'signInId' in owner ? row?.signInId === owner.signInId : row?.consumerId === owner.consumerId;
    if (!row?.challenge || !isOwner || !(await store.consumerTickets.use(id, now))) throw signInFailed('passkey');
    return row.challenge;
  }
}
