// The operations of people on their own account: read it, prove their identity, and change how they sign in.

import type { AuditAction } from '../../../contract/audit.ts';
import type { CurrentAccount, StepUp } from '../../../contract/sign-in.ts';
import type { Passwords } from '../../engines/authenticators/passwords.ts';
import type { AccountRow } from '../../engines/store/rows/accounts.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { AccountId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Secret } from '../../kit/secret.ts';
import type { Audit } from '../audit/audit.ts';
import { byCaller } from '../audit/by-caller.ts';
import { invalidRequest, notFound } from '../faults.ts';
import type { AccountCaller, HumanCaller } from '../identity/caller.ts';
import { cleanName } from '../identity/names.ts';
import type { SharedTallies, SharedTally } from '../limits/shared-tally.ts';
import type { EmailCodes } from './email-codes.ts';
import { notReady, signInFailed, wrongPassword } from './faults.ts';
import type { HumanSessions } from './human-sessions.ts';
import type { PasskeyChallengeView, Passkeys } from './passkeys.ts';
import type { SecondFactors } from './second-factors.ts';

const ACCOUNT_FAILURES_LIMIT = {
  name: 'proofs.account',
  what: 'failed identity checks',
  max: 10,
  withinMs: 600_000,
  scope: 'account',
} as const;

export interface OwnAccountParts {
  readonly store: Pick<Store, 'accounts' | 'passkeys'>;
  readonly clock: Clock;
  readonly audit: Pick<Audit, 'record'>;
  readonly passwords: Pick<Passwords, 'hash' | 'matches'>;
  readonly emailCodes: EmailCodes;
  readonly secondFactors: SecondFactors;
  readonly passkeys: Passkeys;
  readonly sessions: HumanSessions;
  readonly tallies: Pick<SharedTallies, 'of'>;
}

export class OwnAccount {
  readonly #parts: OwnAccountParts;
  readonly #failureTally: SharedTally;

  constructor(parts: OwnAccountParts) {
    this.#parts = parts;
    this.#failureTally = parts.tallies.of(ACCOUNT_FAILURES_LIMIT);
  }

  async read({ accountId, via }: AccountCaller): Promise<CurrentAccount> {
    const { store } = this.#parts;
    const account = await this.#get(accountId);
    const passkeys = await store.passkeys.list(accountId);
    const isOperator = (await store.accounts.first())?.id === accountId;
    return {
      id: account.id,
      name: account.name,
      ...(account.email === undefined ? {} : { email: account.email }),
      ...(isOperator ? { isOperator } : {}),
      emailVerified: account.emailVerifiedAt !== undefined,
      hasPassword: account.passwordHash !== undefined,
      totpEnabled: account.totpEnabledAt !== undefined,
      recoveryCodesLeft: await store.accounts.countRecoveryCodes(accountId),
      passkeys: passkeys.map(({ id, name, createdAt, lastUsedAt }) => ({
        ...{ id, name, createdAt: createdAt.toISOString() },
        ...(lastUsedAt ? { lastUsedAt: lastUsedAt.toISOString() } : {}),
      })),
      createdAt: account.createdAt.toISOString(),
      ...(via.kind === 'human_session' ? { session: sessionView(via) } : {}),
    };
  }

  async rename(caller: HumanCaller, name: string): Promise<CurrentAccount> {
    await this.#parts.store.accounts.change(caller.accountId, { name: cleanName(name) });
    return this.read(caller);
  }

  /** Verifies a proof and returns the new cookie. */
  async stepUp(caller: HumanCaller, proof: StepUp, origin: URL): Promise<Secret> {
    const undoAttempt = await this.#failureTally.take(caller.accountId);
    const acr = await this.#verifyProof(caller.accountId, proof, origin);
    await undoAttempt();
    const cookie = await this.#parts.sessions.renew(caller, acr);
    await this.#recordAudit('account.stepped_up', caller);
    if (proof.method === 'recovery_code') await this.#recordAudit('account.recovery_code_used', caller);
    return cookie;
  }

  /** Verifies a proof and returns its strength. @throws Fault `sign_in_failed`. */
  async #verifyProof(id: AccountId, proof: StepUp, origin: URL): Promise<'berth:1' | 'berth:2' | 'phr'> {
    const { passwords, secondFactors, passkeys } = this.#parts;
    const { method, password, code, ticket, response } = proof;
    if (method === 'password') {
      const account = await this.#get(id);
      if (!(await passwords.matches(requireField('password', password), account.passwordHash))) throw wrongPassword();
      return 'berth:1';
    }
    if (method === 'passkey') {
      await passkeys.authenticate(origin, requireField('ticket', ticket), requireField('response', response), id);
      return 'phr';
    }
    await secondFactors.accept(await this.#get(id), method, requireField('code', code));
    return 'berth:2';
  }

  async requestStepUpChallenge({ accountId }: HumanCaller, origin: URL): Promise<PasskeyChallengeView> {
    return this.#parts.passkeys.beginAuthentication(origin, accountId);
  }

  /**
   * Changes the password and signs out all other browsers, because a password is often changed after somebody else has
   * learned it.
   */
  async changePassword(caller: HumanCaller, password: string): Promise<CurrentAccount> {
    const { store, clock, passwords, sessions } = this.#parts;
    const passwordHash = await passwords.hash(password);
    await store.accounts.change(caller.accountId, { passwordHash, passwordChangedAt: clock.now() });
    await sessions.endOthers(caller.accountId, caller.via.id);
    await this.#recordAudit('account.password_changed', caller);
    return this.read(caller);
  }

  async beginPasskey({ accountId }: HumanCaller, origin: URL): Promise<PasskeyChallengeView> {
    return this.#parts.passkeys.beginRegistration(await this.#get(accountId), origin);
  }

  /** Adds a passkey. The registration counts as a proof with user verification. Returns the new cookie. */
  async addPasskey(
    caller: HumanCaller,
    request: { readonly ticket: string; readonly name: string; readonly response: JsonObject },
    origin: URL,
  ): Promise<Secret> {
    const { passkeys, sessions } = this.#parts;
    await passkeys.register(caller.accountId, origin, request.ticket, request.name, request.response);
    await sessions.refresh(caller.accountId);
    await this.#recordAudit('account.passkey_added', caller);
    return sessions.renew(caller, 'phr');
  }

  async removePasskey(caller: HumanCaller, id: string): Promise<void> {
    await this.#parts.passkeys.remove(caller.accountId, id);
    await this.#parts.sessions.refresh(caller.accountId);
    await this.#recordAudit('account.passkey_removed', caller);
  }

  async beginTotp({ accountId }: HumanCaller): Promise<{ secret: string; uri: string }> {
    return this.#parts.secondFactors.begin(await this.#get(accountId));
  }

  /**
   * Confirms the authenticator app with one of its codes. Returns the recovery codes, and a new cookie if the code is
   * the strongest proof that the account can give.
   */
  async confirmTotp(caller: HumanCaller, code: string): Promise<{ recoveryCodes: string[]; cookie?: Secret }> {
    const { secondFactors, sessions } = this.#parts;
    const undoAttempt = await this.#failureTally.take(caller.accountId);
    const recoveryCodes = await secondFactors.confirm(await this.#get(caller.accountId), code);
    await undoAttempt();
    await sessions.refresh(caller.accountId);
    await this.#recordAudit('account.totp_enabled', caller);
    if (caller.via.strongestAcr === 'phr') return { recoveryCodes };
    return { recoveryCodes, cookie: await sessions.renew(caller, 'berth:2') };
  }

  async removeTotp(caller: HumanCaller): Promise<void> {
    await this.#parts.secondFactors.remove(caller.accountId);
    await this.#parts.sessions.refresh(caller.accountId);
    await this.#recordAudit('account.totp_disabled', caller);
  }

  async renewRecoveryCodes(caller: HumanCaller): Promise<string[]> {
    const { totpEnabledAt } = await this.#get(caller.accountId);
    if (!totpEnabledAt)
      throw notReady(
        'The account has no authenticator app.',
        'Recovery codes replace an authenticator app. Add an authenticator app first.',
      );
    const codes = await this.#parts.secondFactors.renewRecoveryCodes(caller.accountId);
    await this.#recordAudit('account.recovery_codes_renewed', caller);
    return codes;
  }

  async requestEmailVerification({ accountId }: HumanCaller): Promise<{ ticket: string }> {
    const { email } = await this.#get(accountId);
    if (email === undefined)
      throw notReady('The account has no e-mail address.', 'Sign in with an e-mail address first.');
    return { ticket: await this.#parts.emailCodes.send(email, accountId) };
  }

  async verifyEmail(caller: HumanCaller, input: { readonly ticket: string; readonly code: string }) {
    const { store, clock, emailCodes } = this.#parts;
    const { accountId, email } = await emailCodes.accept(input.ticket, input.code);
    const account = await this.#get(caller.accountId);
    if (accountId !== account.id || email !== account.email) throw signInFailed('code');
    await store.accounts.change(account.id, { emailVerifiedAt: clock.now() });
    await this.#recordAudit('account.email_verified', caller);
    return this.read(caller);
  }

  #recordAudit(action: AuditAction, caller: HumanCaller): Promise<void> {
    return this.#parts.audit.record({ action, accountId: caller.accountId, outcome: 'success', ...byCaller(caller) });
  }

  async #get(id: AccountId): Promise<AccountRow> {
    const account = await this.#parts.store.accounts.get(id);
    if (!account) throw notFound('Account', id);
    return account;
  }
}

const sessionView = ({ id, acr, authTime, strongestAcr }: HumanCaller['via']) => ({
  ...{ id, acr, strongestAcr },
  authTime: authTime.toISOString(),
});

function requireField<T>(path: string, value: T | undefined): T {
  if (value === undefined) throw invalidRequest([{ path, message: 'is required for this method' }]);
  return value;
}
