// Codes from an authenticator app, and recovery codes in case the app is lost.
import { createHash, randomBytes } from 'node:crypto';
import type { newSeed, stepOf } from '../../engines/authenticators/one-time-codes.ts';
import type { AccountRow } from '../../engines/store/rows/accounts.ts';
import type { Store } from '../../engines/store/store.ts';
import type { Clock } from '../../kit/clock.ts';
import type { AccountId } from '../../kit/ids.ts';
import { Secret } from '../../kit/secret.ts';
import { notReady, signInFailed } from './faults.ts';

const RECOVERY_CODE_COUNT = 10;
const RECOVERY_CODE_BYTES = 10;

/**
 * Encrypts the seed of an account's authenticator app. A seed that was sealed for one account cannot be opened for
 * another.
 */
export interface SeedSeal {
  close(seed: string, account: AccountId): Promise<string>;
  open(sealed: string, account: AccountId): Promise<string>;
}

export interface SecondFactorsParts {
  readonly store: Pick<Store, 'accounts'>;
  readonly clock: Clock;
  readonly seal: SeedSeal;
  readonly totp: { readonly newSeed: typeof newSeed; readonly stepOf: typeof stepOf };
}

export class SecondFactors {
  readonly #parts: SecondFactorsParts;

  constructor(parts: SecondFactorsParts) {
    this.#parts = parts;
  }

  /** Creates a seed, which takes effect when `confirm` is called. */
  async begin(account: AccountRow): Promise<{ secret: string; uri: string }> {
    if (account.totpEnabledAt)
      throw notReady(
        'The account already has an authenticator app.',
        'Remove the existing app first, then add the new one.',
      );
    const { seed, uriFor } = this.#parts.totp.newSeed();
    const totpSealed = await this.#parts.seal.close(seed.reveal(), account.id);
    await this.#parts.store.accounts.change(account.id, { totpSealed, totpLastStep: undefined });
    return { secret: seed.reveal(), uri: uriFor(account.email ?? account.name).reveal() };
  }

  /**
   * Accepts a code that was generated from the new seed. From then on, codes are required. Returns the recovery codes.
   */
  async confirm(account: AccountRow, code: string): Promise<string[]> {
    if (!account.totpSealed || account.totpEnabledAt)
      throw notReady('There is no new authenticator app to confirm.', 'Start with POST /v1/account/totp.');
    await this.#acceptTotp(account, code);
    await this.#parts.store.accounts.change(account.id, { totpEnabledAt: this.#parts.clock.now() });
    return this.renewRecoveryCodes(account.id);
  }

  async remove(account: AccountId): Promise<void> {
    const clearedFields = { totpSealed: undefined, totpEnabledAt: undefined, totpLastStep: undefined };
    await this.#parts.store.accounts.change(account, clearedFields);
    await this.#parts.store.accounts.replaceRecoveryCodes(account, []);
  }

  async renewRecoveryCodes(account: AccountId): Promise<string[]> {
    const codes = Array.from({ length: RECOVERY_CODE_COUNT }, newRecoveryCode);
    await this.#parts.store.accounts.replaceRecoveryCodes(account, codes.map(hashOf));
    return codes;
  }

  /** Consumes the code. @throws Fault `sign_in_failed`. */
  async accept(account: AccountRow, method: 'totp' | 'recovery_code', code: string): Promise<void> {
    if (!account.totpEnabledAt) throw signInFailed('code');
    if (method === 'totp') return this.#acceptTotp(account, code);
    const { store, clock } = this.#parts;
    if (!(await store.accounts.spendRecoveryCode(account.id, hashOf(code), clock.now()))) throw signInFailed('code');
  }

  /**
   * Accepts a code only if its time step is later than that of the last accepted code. A code is therefore never
   * accepted twice.
   */
  async #acceptTotp({ id, totpSealed }: AccountRow, code: string): Promise<void> {
    const { seal, totp, store, clock } = this.#parts;
    const seed = totpSealed === undefined ? undefined : new Secret(await seal.open(totpSealed, id));
    const step = seed && totp.stepOf(seed, normalizeCode(code), clock.now());
    if (step === undefined || !(await store.accounts.spendTotpStep(id, step))) throw signInFailed('code');
  }
}

/** Removes the spaces and dashes that people type. */
const normalizeCode = (code: string): string => code.replace(/[\s-]/g, '').toLowerCase();

/** 80 random bits in base 32, in groups of four. */
function newRecoveryCode(): string {
  const alphabet = 'abcdefghijkmnpqrstuvwxyz23456789';
  const text = [...randomBytes((RECOVERY_CODE_BYTES * 8) / 5)]
    .map(byte => alphabet.charAt(byte % alphabet.length))
    .join('');
  return text.match(/.{4}/g)?.join('-') ?? text;
}

const hashOf = (code: string): Buffer => createHash('sha256').update(normalizeCode(code)).digest();
