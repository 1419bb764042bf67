// The wiring of the vault: the source of the master key, and the values that are sealed (context keys, proxy routes,
// signing keys).
import type { Config } from '../config.ts';
import type { RouteSeal } from '../domain/network/network.ts';
import type { SeedSeal } from '../domain/people/second-factors.ts';
import { SigningKeys } from '../domain/signing/signing-keys.ts';
import type { ContextKeys, ContextOwner } from '../engines/profiles/context-keys.ts';
import type { Store } from '../engines/store/store.ts';
import { isFormerContextKey, openFormerContextKey, openFormerRoutes } from '../engines/vault/former-seal.ts';
import { masterKeySource } from '../engines/vault/master-key-source.ts';
import { INSTALLATION_ID } from '../engines/vault/rows.ts';
import { newSigningKey, publicKeyOf, sign, signBytes, verify } from '../engines/vault/signing.ts';
import { type SealBinding, Vault, type VaultParts } from '../engines/vault/vault.ts';
import type { Clock } from '../kit/clock.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Secret } from '../kit/secret.ts';

export const vaultParts = (
  { masterKey, sharedDir }: Pick<Config, 'masterKey' | 'sharedDir'>,
  store: Pick<Store, 'vault'>,
  clock: Clock,
): VaultParts => ({ rows: store.vault, masterKeys: masterKeySource(masterKey ?? { dataDir: sharedDir }), clock });

export const openVault = (
  config: Pick<Config, 'masterKey' | 'sharedDir'>,
  store: Pick<Store, 'vault'>,
  clock: Clock,
): Promise<Vault> => Vault.open(vaultParts(config, store, clock));

const SIGNING_ENGINE = { newSigningKey, publicKeyOf, sign, signBytes, verify } as const;

export const signingKeys = (
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
  store: Pick<Store, 'signingKeys'>,
  vault: Vault,
): SigningKeys =>
  new SigningKeys({ store, vault, engine: SIGNING_ENGINE, installationOwner: INSTALLATION_ID, clock, log });

const FIRST_VERSION = 1;

/**
 * Seals context keys in the vault. Keys that were stored before the vault existed are opened with the installation's
 * secret.
 */
export function contextKeys(vault: Vault, secret: Secret): ContextKeys {
  const placeOf = ({ id, applicationId }: ContextOwner): SealBinding => ({
    ...{ owner: applicationId, kind: 'context_key', id, version: FIRST_VERSION },
  });
  return {
    wrap: (context, key) => vault.seal(placeOf(context), key.reveal()),
    unwrap: async (context, wrapped) =>
      isFormerContextKey(wrapped)
        ? openFormerContextKey(secret, context.id, wrapped)
        : vault.open(placeOf(context), wrapped),
  };
}

export function seedSeal(vault: Vault): SeedSeal {
  const placeOf = (id: string): SealBinding => ({
    owner: INSTALLATION_ID,
    kind: 'totp_seed',
    id,
    version: FIRST_VERSION,
  });
  return {
    close: async (seed, account) => (await vault.seal(placeOf(account), Buffer.from(seed))).toString('base64url'),
    open: async (sealed, account) =>
      (await vault.open(placeOf(account), Buffer.from(sealed, 'base64url'))).reveal().toString(),
  };
}

/**
 * Marks proxy routes that are sealed in the vault. The colon is not a base64url character, so routes stored before the
 * vault existed cannot begin with this prefix.
 */
const VAULT_PREFIX = 'vault:';

export function routeSeal(vault: Vault, secret: Secret): RouteSeal {
  const placeOf = ({ id, applicationId }: Parameters<RouteSeal['close']>[1]): SealBinding => ({
    ...{ owner: applicationId, kind: 'proxy_routes', id, version: FIRST_VERSION },
  });
  return {
    close: async (text, session) =>
      VAULT_PREFIX + (await vault.seal(placeOf(session), Buffer.from(text))).toString('base64url'),
    open: async (sealed, session) => {
      if (!sealed.startsWith(VAULT_PREFIX)) return openFormerRoutes(secret, session.id, sealed);
      const bytes = Buffer.from(sealed.slice(VAULT_PREFIX.length), 'base64url');
      return (await vault.open(placeOf(session), bytes)).reveal().toString();
    },
  };
}
