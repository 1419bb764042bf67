// The wiring of credentials for other services: their values in the vault, and their fingerprints.
import { createHmac } from 'node:crypto';
import type { CredentialValue } from '../../contract/stored-credentials.ts';
import type { Applications } from '../domain/identity/applications.ts';
import { Cursors } from '../domain/identity/cursors.ts';
import { CallCredentials } from '../domain/stored-credentials/call-credentials.ts';
import {
  StoredCredentials,
  type ValueSeal,
  type VersionPlace,
} from '../domain/stored-credentials/stored-credentials.ts';
import { TypedCredentials } from '../domain/stored-credentials/typed-credentials.ts';
import { codeOf } from '../engines/authenticators/one-time-codes.ts';
import type { SealBinding, Vault } from '../engines/vault/vault.ts';
import { parseJson } from '../kit/foreign.ts';
import { isObject } from '../kit/json.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Secret } from '../kit/secret.ts';
import type { Foundation } from './foundation.ts';

const DESTROY_INTERVAL_MS = 60_000;
const RECORD_INTERVAL_MS = 600_000;
const FINGERPRINT_CHARACTERS = 32;

export function openStoredCredentials(
  { clock }: Runtime,
  { store, vault, secret, audit }: Foundation,
  applications: Pick<Applications, 'require'>,
) {
  const seal = valueSeal(vault);
  const calls = new CallCredentials({ store, seal, audit, clock });
  return {
    service: new StoredCredentials({
      ...{ store, applications, audit, seal, clock, cursors: new Cursors(secret, clock) },
      fingerprint: (application, text) => fingerprintOf(secret, application, text),
    }),
    calls,
    typed: new TypedCredentials({ rows: store.storedCredentials, seal, codeOf, clock }),
    tasks: [
      { name: 'destroy_credential_versions', everyMs: DESTROY_INTERVAL_MS, run: () => calls.destroyDue() },
      { name: 'record_credential_uses', everyMs: RECORD_INTERVAL_MS, run: () => calls.recordUses() },
    ],
  };
}

function valueSeal(vault: Vault): ValueSeal {
  const placeOf = ({ applicationId, credentialId, version }: VersionPlace): SealBinding => ({
    ...{ owner: applicationId, kind: 'credential', id: credentialId, version },
  });
  return {
    close: (place, value) => vault.seal(placeOf(place), Buffer.from(JSON.stringify(value))),
    open: async (place, sealed) => {
      const value = parseJson((await vault.open(placeOf(place), sealed)).reveal());
      if (!isObject(value)) throw new Error(`the value of the credential ${place.credentialId} is not an object`);
      return value as CredentialValue; // The value was validated before it was sealed.
    },
  };
}

/** Each application has its own key, so equal values have different fingerprints in different applications. */
function fingerprintOf(secret: Secret, application: string, text: string): string {
  const key = createHmac('sha256', secret.reveal()).update(`credential fingerprint\n${application}`).digest();
  return createHmac('sha256', key).update(text).digest('hex').slice(0, FINGERPRINT_CHARACTERS);
}
