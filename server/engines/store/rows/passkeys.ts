// Passkeys of accounts (WebAuthn).
import type { AccountId, PasskeyId } from '../../../kit/ids.ts';

export interface PasskeyRow {
  readonly id: PasskeyId;
  readonly accountId: AccountId;
  readonly credentialId: Buffer;
  /** COSE key. */
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
  /** False when there is none. */
  remove(account: AccountId, id: PasskeyId): Promise<boolean>;
  /** Notes a use. False when the counter did not increase, which a copied authenticator shows; 0 means that it does not count. */
  used(id: PasskeyId, counter: number, at: Date): Promise<boolean>;
}
