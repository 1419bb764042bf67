// Creates and uses passkeys in this browser.
import type { JsonObject } from '../../../contract/common.ts';
import type { PasskeyChallenge } from '../../../contract/sign-in.ts';

const IP_ADDRESS = /^(\d+\.){3}\d+$|^\[/;

/**
 * Browsers offer passkeys only to pages that have a host name instead of an IP address and are loaded over https or
 * from localhost.
 */
export const supportsPasskeys = (): boolean =>
  isSecureContext && 'PublicKeyCredential' in globalThis && !IP_ADDRESS.test(location.hostname);

/** Returns the response of the authenticator as JSON. Throws a readable error if the person cancels. */
export async function createPasskey({ publicKey }: PasskeyChallenge): Promise<JsonObject> {
  const options = PublicKeyCredential.parseCreationOptionsFromJSON(
    publicKey as unknown as PublicKeyCredentialCreationOptionsJSON, // The service created these options.
  );
  return runCeremony(() => navigator.credentials.create({ publicKey: options }));
}

export async function askPasskey({ publicKey }: PasskeyChallenge): Promise<JsonObject> {
  const options = PublicKeyCredential.parseRequestOptionsFromJSON(
    publicKey as unknown as PublicKeyCredentialRequestOptionsJSON, // The service created these options.
  );
  return runCeremony(() => navigator.credentials.get({ publicKey: options }));
}

async function runCeremony(ceremony: () => Promise<Credential | null>): Promise<JsonObject> {
  try {
    const credential = await ceremony();
    if (credential instanceof PublicKeyCredential) return JSON.parse(JSON.stringify(credential));
  } catch (error) {
    throw new Error('No passkey was created or used. Try again, or use another method.', { cause: error });
  }
  throw new Error('This browser did not provide a passkey. Use another method.');
}
