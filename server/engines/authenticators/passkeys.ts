// Passkeys (WebAuthn level 3). The response of an authenticator is untrusted until the library has verified it. The
// library is loaded when it is first used, because most installations never need it.
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';

const RP_NAME = 'Berth';
const CHALLENGE_LIFETIME_MS = 300_000;

export interface RelyingParty {
  /** The origin of the page. */
  readonly origin: string;
  /** The host name to which passkeys are bound. */
  readonly id: string;
}

export interface StoredPasskey {
  readonly credentialId: Buffer;
  readonly publicKey: Buffer;
  readonly counter: number;
  readonly transports: readonly string[];
}

/** Options for the browser, and the challenge that they contain. */
export interface Challenge {
  readonly challenge: string;
  readonly publicKey: Readonly<Record<string, unknown>>;
}

const loadLibrary = () => import('@simplewebauthn/server');

export async function registrationChallenge(
  party: RelyingParty,
  person: { readonly id: string; readonly email: string; readonly name: string },
  existingPasskeys: readonly StoredPasskey[],
): Promise<Challenge> {
  const { generateRegistrationOptions } = await loadLibrary();
  const options = await generateRegistrationOptions({
    rpName: RP_NAME,
    rpID: party.id,
    userID: new Uint8Array(Buffer.from(person.id)),
    userName: person.email,
    userDisplayName: person.name,
    timeout: CHALLENGE_LIFETIME_MS,
    excludeCredentials: existingPasskeys.map(descriptorOf),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
  return { challenge: options.challenge, publicKey: { ...options } };
}

/** Undefined if the response cannot be verified. */
export async function verifyRegistration(
  party: RelyingParty,
  challenge: string,
  response: RegistrationResponseJSON,
): Promise<StoredPasskey | undefined> {
  const { verifyRegistrationResponse } = await loadLibrary();
  const verification = await orUndefined(() =>
    verifyRegistrationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: true,
    }),
  );
  if (!verification?.verified) return undefined;
  const { id, publicKey, counter, transports = [] } = verification.registrationInfo.credential;
  return { credentialId: Buffer.from(id, 'base64url'), publicKey: Buffer.from(publicKey), counter, transports };
}

/** A challenge for these passkeys or, if the list is empty, for any passkey that the browser has for this service. */
export async function authenticationChallenge(
  party: RelyingParty,
  allowedPasskeys: readonly StoredPasskey[] = [],
): Promise<Challenge> {
  const { generateAuthenticationOptions } = await loadLibrary();
  const options = await generateAuthenticationOptions({
    rpID: party.id,
    timeout: CHALLENGE_LIFETIME_MS,
    userVerification: 'required',
    ...(allowedPasskeys.length > 0 ? { allowCredentials: allowedPasskeys.map(descriptorOf) } : {}),
  });
  return { challenge: options.challenge, publicKey: { ...options } };
}

/** A challenge that consists of the given bytes instead of random ones, so that the passkey signs them. */
export async function signingChallenge(
  party: RelyingParty,
  bytes: Uint8Array,
  allowedPasskeys: readonly StoredPasskey[],
): Promise<Challenge> {
  const { generateAuthenticationOptions } = await loadLibrary();
  const options = await generateAuthenticationOptions({
    rpID: party.id,
    challenge: new Uint8Array(bytes),
    timeout: CHALLENGE_LIFETIME_MS,
    userVerification: 'required',
    allowCredentials: allowedPasskeys.map(descriptorOf),
  });
  return { challenge: options.challenge, publicKey: { ...options } };
}

/** The new counter of the passkey. Undefined if the response cannot be verified. */
export async function verifyAuthentication(
  party: RelyingParty,
  challenge: string,
  response: AuthenticationResponseJSON,
  { credentialId, publicKey, counter }: StoredPasskey,
): Promise<number | undefined> {
  const { verifyAuthenticationResponse } = await loadLibrary();
  const verification = await orUndefined(() =>
    verifyAuthenticationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      credential: { id: credentialId.toString('base64url'), publicKey: new Uint8Array(publicKey), counter },
      requireUserVerification: true,
    }),
  );
  return verification?.verified ? verification.authenticationInfo.newCounter : undefined;
}

const descriptorOf = ({ credentialId, transports }: StoredPasskey) => ({
  id: credentialId.toString('base64url'),
  transports: [...transports],
});

/** The library throws for responses that are malformed or cannot be verified. Callers treat both alike. */
async function orUndefined<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch {
    return undefined;
  }
}
