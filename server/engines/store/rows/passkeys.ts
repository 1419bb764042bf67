// Passkeys of accounts (WebAuthn).
import type { AccountId, PasskeyId } from '../../../kit/ids.ts';

export interface PasskeyRow {
  readonly id: PasskeyId;
  readonly accountId: AccountId;
  readonly credentialId: Buffer;
  /** The public key in COSE format. */
  readonly publicKey: Buffer;
  readonly counter: number;
  readonly transports: readonly string[];
  readonly name: string;
  readonly createdAt: Date;
  readonly lastUsedAt?: Date;
}

export interface Passkeys {
  insert(row: PasskeyRow, limit: number): Promise<'inserted' | 'limit_reached' | 'exists'>;
  list(account: AccountId): Promise<PasskeyRow[]>;
  byCredential(credentialId: Buffer): Promise<PasskeyRow | undefined>;
  /** False if there is no such passkey. */
  remove(account: AccountId, id: PasskeyId): Promise<boolean>;
  /**
   * Records a use. False if the counter did not increase, which indicates a copied authenticator. A counter that is
   * always 0 is accepted, because some authenticators do not count uses.
   */
  recordUse(id: PasskeyId, counter: number, at: Date): Promise<boolean>;
}
