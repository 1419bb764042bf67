// Passkeys: the two ceremonies of WebAuthn, registration and authentication, each with a single-use challenge.
import { isIP } from 'node:net';
import type { readAuthentication, readRegistration } from '../../engines/authenticators/passkey-response.ts';
import type * as engine from '../../engines/authenticators/passkeys.ts';
import type { AccountRow } from '../../engines/store/rows/accounts.ts';
import type { TicketRow } from '../../engines/store/rows/sign-in-tickets.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type AccountId, isUuid, newId, type PasskeyId, type TicketId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import { fault, limitReached, notFound } from '../faults.ts';
import { cleanName } from '../identity/names.ts';
import { signInFailed } from './faults.ts';

const PASSKEYS_PER_ACCOUNT_MAX = 20;
const CHALLENGE_LIFETIME_MS = 300_000;
/** A challenge allows one attempt. */
const TRIES_MAX = 1;

export interface PasskeysParts {
  readonly store: Pick<Store, 'passkeys' | 'signInTickets'>;
  readonly clock: Clock;
  readonly webauthn: Pick<
    typeof engine,
    'registrationChallenge' | 'verifyRegistration' | 'authenticationChallenge' | 'verifyAuthentication'
  > & { readonly readRegistration: typeof readRegistration; readonly readAuthentication: typeof readAuthentication };
}

export interface PasskeyChallengeView {
  readonly ticket: TicketId;
  readonly publicKey: JsonObject;
}

export class Passkeys {
  readonly #parts: PasskeysParts;

  constructor(parts: PasskeysParts) {
    this.#parts = parts;
  }

  /** Starts adding a passkey to the account. */
  async beginRegistration(account: AccountRow, origin: URL): Promise<PasskeyChallengeView> {
    const { id, email = '', name } = account;
    const existingPasskeys = await this.#parts.store.passkeys.list(id);
    const party = partyOf(origin);
    return this.#createTicket(
      await this.#parts.webauthn.registrationChallenge(party, { id, email, name }, existingPasskeys),
      id,
    );
  }

  async register(account: AccountId, origin: URL, ticket: string, name: string, response: JsonObject): Promise<void> {
    const { store, clock, webauthn } = this.#parts;
    const displayName = cleanName(name);
    const { challenge } = await this.#consumeChallenge(ticket, account);
    const parsedResponse = webauthn.readRegistration(response);
    const passkey = parsedResponse && (await webauthn.verifyRegistration(partyOf(origin), challenge, parsedResponse));
    if (!passkey) throw signInFailed('passkey');
    const now = clock.now();
    const row = { id: newId<PasskeyId>(now), accountId: account, name: displayName, createdAt: now, ...passkey };
    const outcome = await store.passkeys.insert(row, PASSKEYS_PER_ACCOUNT_MAX);
    if (outcome === 'limit_reached') throw limitReached('passkeys in this account', PASSKEYS_PER_ACCOUNT_MAX);
    if (outcome === 'exists') throw signInFailed('passkey');
  }

  /** Creates a challenge for a passkey of this account, or for any passkey of the browser if no account is given. */
  async beginAuthentication(origin: URL, account?: AccountId): Promise<PasskeyChallengeView> {
    const allowedPasskeys = account ? await this.#parts.store.passkeys.list(account) : [];
    return this.#createTicket(
      await this.#parts.webauthn.authenticationChallenge(partyOf(origin), allowedPasskeys),
      account,
    );
  }

  /** Returns the account whose passkey signed the challenge. If `account` is given, only that account is accepted. */
  async authenticate(origin: URL, ticket: string, response: JsonObject, account?: AccountId): Promise<AccountId> {
    const { store, clock, webauthn } = this.#parts;
    const { challenge } = await this.#consumeChallenge(ticket, account);
    const parsedResponse = webauthn.readAuthentication(response);
    const passkey = parsedResponse && (await store.passkeys.byCredential(Buffer.from(parsedResponse.id, 'base64url')));
    if (!passkey || (account && passkey.accountId !== account)) throw signInFailed('passkey');
    const counter = await webauthn.verifyAuthentication(partyOf(origin), challenge, parsedResponse, passkey);
    if (counter === undefined || !(await store.passkeys.recordUse(passkey.id, counter, clock.now())))
      throw signInFailed('passkey');
    return passkey.accountId;
  }

  async remove(account: AccountId, id: string): Promise<void> {
    const isRemoved = isUuid(id) && (await this.#parts.store.passkeys.remove(account, id as PasskeyId)); // Checked by isUuid.
    if (!isRemoved) throw notFound('Passkey', id);
  }

  async #createTicket({ challenge, publicKey }: engine.Challenge, account?: AccountId): Promise<PasskeyChallengeView> {
    const now = this.#parts.clock.now();
    const ticket = newId<TicketId>(now);
    await this.#parts.store.signInTickets.insert({
      ...{ id: ticket, kind: 'passkey', challenge, createdAt: now, expiresAt: addMs(now, CHALLENGE_LIFETIME_MS) },
      ...(account ? { accountId: account } : {}),
    });
    return { ticket, publicKey: publicKey as JsonObject }; // The options of the library contain only JSON values.
  }

  /**
   * Consumes the challenge of a ticket. Throws if the ticket is unknown, has expired, was already used or tried too
   * often, or was issued for another account.
   */
  async #consumeChallenge(
    ticket: string,
    account: AccountId | undefined,
  ): Promise<TicketRow & { readonly challenge: string }> {
    const { store, clock } = this.#parts;
    const id = ticket as TicketId; // Checked by isUuid in the next line.
    const row = isUuid(ticket) ? await store.signInTickets.attempt(id, 'passkey', clock.now(), TRIES_MAX) : undefined;
    if (!row?.challenge || row.accountId !== account) throw signInFailed('passkey');
    if (!(await store.signInTickets.use(id, clock.now()))) throw signInFailed('passkey');
    return { ...row, challenge: row.challenge };
  }
}

/**
 * Returns the relying party. Throws for an IP address: a passkey is bound to a host name, and browsers offer no
 * passkeys for an IP address.
 */
export function partyOf({ origin, hostname }: URL): engine.RelyingParty {
  if (isIP(hostname.replace(/^\[|\]$/g, '')) === 0) return { origin, id: hostname };
  throw fault('feature_unavailable', `Passkeys require a host name, but this page has the address ${hostname}.`, {
    advice:
      'Open this page at http://localhost with the same port, or ask the operator to set BERTH_PUBLIC_URL to an address with a host name.',
  });
}
