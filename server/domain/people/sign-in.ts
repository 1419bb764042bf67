// Sign-in. Each method gives a first proof. An account with an authenticator app needs a second proof, except after a
// passkey.

import type { AuditAction } from '../../../contract/audit.ts';
import type { Acr, SignInResult } from '../../../contract/sign-in.ts';
import type { Passwords } from '../../engines/authenticators/passwords.ts';
import type { AccountRow } from '../../engines/store/rows/accounts.ts';
import type { TicketRow } from '../../engines/store/rows/sign-in-tickets.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import { type AccountId, isUuid, newId, type TicketId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Secret } from '../../kit/secret.ts';
import { WorkLimitReached } from '../../kit/work-limiter.ts';
import type { Audit } from '../audit/audit.ts';
import { fault } from '../faults.ts';
import type { RequestSource } from '../identity/caller.ts';
import { cleanName } from '../identity/names.ts';
import { type SharedTallies, type SharedTally, takeAll } from '../limits/shared-tally.ts';
import { cleanEmail } from './email.ts';
import { type EmailCodes, TRIES_MAX } from './email-codes.ts';
import { emailTaken, signInFailed, wrongPassword } from './faults.ts';
import type { HumanSessions } from './human-sessions.ts';
import type { PasskeyChallengeView, Passkeys } from './passkeys.ts';
import type { SecondFactors } from './second-factors.ts';
import { digestOf } from './set-up-links.ts';

const MINUTE_MS = 60_000;
/** The limit on failed sign-ins to one account from one address. */
const ACCOUNT_FAILURES_LIMIT = {
  name: 'sign_in.account',
  what: 'failed sign-ins',
  max: 10,
  withinMs: 10 * MINUTE_MS,
  scope: 'account',
} as const;
/** The limit on failed sign-ins to all accounts from one address. */
const ADDRESS_FAILURES_LIMIT = {
  name: 'sign_in.address',
  what: 'failed sign-ins',
  max: 50,
  withinMs: 10 * MINUTE_MS,
  scope: 'address',
} as const;
/** The limit on codes, challenges and registrations that one address may request. */
const ADDRESS_REQUESTS_LIMIT = {
  name: 'sign_in.requests',
  what: 'requests for codes, challenges and registrations',
  max: 60,
  withinMs: 10 * MINUTE_MS,
  scope: 'address',
} as const;
const SECOND_FACTOR_TIMEOUT_MS = 10 * MINUTE_MS;

export type Registration = 'open' | 'invite' | 'closed';

/** The result of a step of a sign-in. Contains the cookie if the sign-in is complete. */
export interface SignInStep {
  readonly result: SignInResult;
  readonly cookie?: Secret;
}

export interface SignInParts {
  readonly store: Pick<Store, 'accounts' | 'signInTickets' | 'atomically'>;
  readonly clock: Clock;
  readonly audit: Pick<Audit, 'record'>;
  readonly registration: Registration;
  readonly passwords: Pick<Passwords, 'hash' | 'matches'>;
  readonly emailCodes: EmailCodes;
  readonly secondFactors: SecondFactors;
  readonly passkeys: Passkeys;
  readonly sessions: HumanSessions;
  readonly tallies: Pick<SharedTallies, 'of'>;
  /** Returns the e-mail address that an invitation was sent to, if the invitation is still pending. */
  readonly invitedEmail: (secret: string) => Promise<string | undefined>;
}

export class SignIn {
  readonly #parts: SignInParts;
  readonly #accountTally: SharedTally;
  readonly #addressTally: SharedTally;
  readonly #requestTally: SharedTally;

  constructor(parts: SignInParts) {
    this.#parts = parts;
    this.#accountTally = parts.tallies.of(ACCOUNT_FAILURES_LIMIT);
    this.#addressTally = parts.tallies.of(ADDRESS_FAILURES_LIMIT);
    this.#requestTally = parts.tallies.of(ADDRESS_REQUESTS_LIMIT);
  }

  // ---- new accounts ------------------------------------------------------------------------------------------------

  async setUp(
    request: { readonly token: string; readonly name: string; readonly email: string; readonly password: string },
    source: RequestSource,
  ): Promise<SignInStep> {
    const { store, clock, passwords, sessions } = this.#parts;
    const [name, email] = [cleanName(request.name), cleanEmail(request.email)];
    const ticket = await this.#limitFailures('set up', source, () => this.#requireSetUpTicket(request.token));
    const previousAccount = await this.#get(ticket.accountId);
    const accountWithEmail = await store.accounts.byEmail(email);
    if (accountWithEmail && accountWithEmail.id !== previousAccount.id) throw emailTaken();
    const passwordHash = await passwords.hash(request.password);
    const now = clock.now();
    // A changed address has not been verified.
    const emailVerifiedAt = email === previousAccount.email ? previousAccount.emailVerifiedAt : undefined;
    const change = { name, email, passwordHash, passwordChangedAt: now, emailVerifiedAt };
    // If the account cannot be changed, the error undoes the use of the link.
    await store.atomically(async trx => {
      if (!(await trx.signInTickets.use(ticket.id, now))) throw signInFailed('link');
      if ((await trx.accounts.change(previousAccount.id, change)) === 'email_taken') throw emailTaken();
    });
    // Ends the human sessions that were created before the link was used.
    await sessions.endOthers(previousAccount.id, undefined);
    const action = previousAccount.email === undefined ? 'account.created' : 'account.password_changed';
    await this.#recordAudit(action, previousAccount.id, source);
    return this.#afterFirstFactor(previousAccount, source);
  }

  async register(
    request: {
      readonly name: string;
      readonly email: string;
      readonly password: string;
      readonly invitation?: string;
    },
    source: RequestSource,
  ): Promise<SignInStep> {
    const { store, clock, passwords } = this.#parts;
    const [name, email] = [cleanName(request.name), cleanEmail(request.email)];
    await this.#countRequest(source);
    await this.#assertMayRegister(email, request.invitation);
    const now = clock.now();
    const passwordHash = await passwords.hash(request.password);
    const account = { id: newId<AccountId>(now), name, createdAt: now, email, passwordHash, passwordChangedAt: now };
    if ((await store.accounts.insert(account)) === 'email_taken') throw emailTaken();
    await this.#recordAudit('account.created', account.id, source);
    return this.#complete(account.id, 'berth:1', source);
  }

  async #assertMayRegister(email: string, invitation: string | undefined): Promise<void> {
    const { registration, invitedEmail } = this.#parts;
    if (registration === 'open') return;
    const invitedAddress =
      registration === 'invite' && invitation !== undefined ? await invitedEmail(invitation) : undefined;
    if (invitedAddress === email) return;
    if (registration === 'closed')
      throw fault('permission_denied', 'Registration is closed on this installation.', {
        advice: 'Sign in with an existing account, or ask the operator to allow registration (BERTH_REGISTRATION).',
      });
    throw fault('permission_denied', 'Registration requires an invitation to this e-mail address.', {
      advice: 'Ask an admin of the application, or the operator, for an invitation.',
    });
  }

  // ---- ways to sign in -------------------------------------------------------------------------------------------

  async withPassword(credentials: { readonly email: string; readonly password: string }, source: RequestSource) {
    const email = cleanEmail(credentials.email);
    const account = await this.#limitFailures(email, source, async () => {
      const foundAccount = await this.#parts.store.accounts.byEmail(email);
      const isPasswordCorrect = await this.#parts.passwords.matches(credentials.password, foundAccount?.passwordHash);
      if (!foundAccount || !isPasswordCorrect) throw wrongPassword();
      return foundAccount;
    });
    return this.#afterFirstFactor(account, source);
  }

  async requestEmailCode(credentials: { readonly email: string }, source: RequestSource): Promise<{ ticket: string }> {
    const email = cleanEmail(credentials.email);
    await this.#countRequest(source);
    const account = await this.#parts.store.accounts.byEmail(email);
    return { ticket: await this.#parts.emailCodes.send(email, account?.id) };
  }

  async withEmailCode(credentials: { readonly ticket: string; readonly code: string }, source: RequestSource) {
    const { store, clock, emailCodes } = this.#parts;
    const account = await this.#limitFailures('code', source, async () => {
      const { accountId, email } = await emailCodes.accept(credentials.ticket, credentials.code);
      const foundAccount = await this.#get(accountId);
      // The address of the account may have changed since the code was sent.
      if (foundAccount.email !== email) throw signInFailed('code');
      return foundAccount;
    });
    await store.accounts.change(account.id, { emailVerifiedAt: clock.now() });
    await this.#recordAudit('account.email_verified', account.id, source);
    return this.#afterFirstFactor(account, source);
  }

  async requestPasskeyChallenge(origin: URL, source: RequestSource): Promise<PasskeyChallengeView> {
    await this.#countRequest(source);
    return this.#parts.passkeys.beginAuthentication(origin);
  }

  async withPasskey(
    credentials: { readonly ticket: string; readonly response: JsonObject },
    origin: URL,
    source: RequestSource,
  ): Promise<SignInStep> {
    const accountId = await this.#limitFailures('passkey', source, () =>
      this.#parts.passkeys.authenticate(origin, credentials.ticket, credentials.response),
    );
    return this.#complete(accountId, 'phr', source);
  }

  async withSecondFactor(
    credentials: { readonly ticket: string; readonly method: 'totp' | 'recovery_code'; readonly code: string },
    source: RequestSource,
  ): Promise<SignInStep> {
    const { store, clock, secondFactors } = this.#parts;
    const id = credentials.ticket as TicketId; // Checked by isUuid in the next line.
    const ticket = isUuid(credentials.ticket)
      ? await store.signInTickets.attempt(id, 'second_factor', clock.now(), TRIES_MAX)
      : undefined;
    if (!ticket?.accountId) throw signInFailed('code');
    const account = await this.#get(ticket.accountId);
    await this.#limitFailures(account.id, source, () =>
      secondFactors.accept(account, credentials.method, credentials.code),
    );
    if (!(await store.signInTickets.use(id, clock.now()))) throw signInFailed('code');
    if (credentials.method === 'recovery_code')
      await this.#recordAudit('account.recovery_code_used', account.id, source);
    return this.#complete(account.id, 'berth:2', source);
  }

  // ---- common steps ------------------------------------------------------------------------------------------------

  async #afterFirstFactor(account: AccountRow, source: RequestSource): Promise<SignInStep> {
    if (!account.totpEnabledAt) return this.#complete(account.id, 'berth:1', source);
    const { store, clock } = this.#parts;
    const now = clock.now();
    const ticket = newId<TicketId>(now);
    const expiresAt = addMs(now, SECOND_FACTOR_TIMEOUT_MS);
    const accountId = account.id;
    await store.signInTickets.insert({ id: ticket, kind: 'second_factor', accountId, createdAt: now, expiresAt });
    return { result: { status: 'second_factor_required', ticket, methods: ['totp', 'recovery_code'] } };
  }

  async #complete(accountId: AccountId, acr: Acr, source: RequestSource): Promise<SignInStep> {
    const cookie = await this.#parts.sessions.begin(accountId, acr, source);
    await this.#recordAudit('account.signed_in', accountId, source, { acr });
    return { result: { status: 'signed_in', accountId }, cookie };
  }

  async #requireSetUpTicket(secret: string): Promise<TicketRow & { readonly accountId: AccountId }> {
    const { store, clock } = this.#parts;
    const ticket = await store.signInTickets.byHash(digestOf(secret), 'setup', clock.now());
    const { accountId } = ticket ?? {};
    if (!ticket || !accountId) throw signInFailed('link');
    return { ...ticket, accountId };
  }

  async #get(id: AccountId): Promise<AccountRow> {
    const account = await this.#parts.store.accounts.get(id);
    if (!account) throw signInFailed('sign-in');
    return account;
  }

  /**
   * Limits the failed attempts from this address, both for `name` (an account or a method) and in total. Attempts in
   * progress count as failures. An attempt that was refused with `WorkLimitReached` has had no effect and does not
   * count.
   */
  async #limitFailures<T>(name: string, source: RequestSource, attempt: () => Promise<T>): Promise<T> {
    const undoAttempts = await takeAll([this.#addressTally, source.ip], [this.#accountTally, `${name} ${source.ip}`]);
    try {
      const result = await attempt();
      await undoAttempts();
      return result;
    } catch (error) {
      if (error instanceof WorkLimitReached) {
        await undoAttempts();
        throw error;
      }
      await this.#parts.audit.record({
        ...{ action: 'account.sign_in_failed', outcome: 'refused', actor: { kind: 'anonymous' } },
        ...source,
      });
      throw error;
    }
  }

  #recordAudit(
    action: AuditAction,
    accountId: AccountId,
    source: RequestSource,
    details: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const actor = { kind: 'account', id: accountId } as const;
    return this.#parts.audit.record({ action, accountId, actor, outcome: 'success', details, ...source });
  }

  async #countRequest({ ip }: RequestSource): Promise<void> {
    await this.#requestTally.take(ip);
  }
}
