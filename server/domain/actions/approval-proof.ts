// Requests and verifies the signature of a passkey over the digest of an Action. The signature comes from a browser and
// is not trusted until it is verified.
import { isIP } from 'node:net';
import type { readAuthentication } from '../../engines/authenticators/passkey-response.ts';
import type * as engine from '../../engines/authenticators/passkeys.ts';
import type { passkeyJwk } from '../../engines/authenticators/public-jwk.ts';
import type { JsonObject } from '../../kit/json.ts';
import { fault } from '../faults.ts';
import { partyOf } from '../people/passkeys.ts';
import type { ApproverPasskeys } from './approver.ts';
import { bytesOfDigest } from './content.ts';
import type { DecisionRecord } from './decision-record.ts';

export interface ApprovalProofParts {
  readonly webauthn: Pick<typeof engine, 'signingChallenge' | 'verifyAuthentication'> & {
    readonly readAuthentication: typeof readAuthentication;
    readonly passkeyJwk: typeof passkeyJwk;
  };
}

export type VerifiedProof = Required<Pick<DecisionRecord, 'proof' | 'publicKey' | 'rpId'>>;

export class ApprovalProofs {
  readonly #webauthn: ApprovalProofParts['webauthn'];

  constructor({ webauthn }: ApprovalProofParts) {
    this.#webauthn = webauthn;
  }

  /**
   * Returns the options with which the browser requests the signature. Undefined if the person has no passkey, or if
   * passkeys do not work at this origin.
   */
  async challenge(passkeys: ApproverPasskeys, digest: string, origin: URL): Promise<JsonObject | undefined> {
    const ownPasskeys = await passkeys.list();
    if (ownPasskeys.length === 0 || isIpAddress(origin)) return undefined;
    const { publicKey } = await this.#webauthn.signingChallenge(partyOf(origin), bytesOfDigest(digest), ownPasskeys);
    return publicKey as JsonObject; // The library returns options that are sent as JSON.
  }

  /**
   * Returns the proof.
   * @throws Fault `verification_failed` unless a passkey of the person has signed this digest at this origin, with user
   * verification.
   */
  async verify(passkeys: ApproverPasskeys, digest: string, origin: URL, response: JsonObject): Promise<VerifiedProof> {
    const parsedResponse = this.#webauthn.readAuthentication(response);
    const credentialId = parsedResponse && Buffer.from(parsedResponse.id, 'base64url');
    const passkey = credentialId && (await passkeys.list()).find(one => one.credentialId.equals(credentialId));
    if (!passkey || isIpAddress(origin)) throw notVerified();
    const relyingParty = partyOf(origin);
    const challenge = bytesOfDigest(digest).toString('base64url');
    const counter = await this.#webauthn.verifyAuthentication(relyingParty, challenge, parsedResponse, passkey);
    const publicKey = counter === undefined ? undefined : await this.#webauthn.passkeyJwk(passkey.publicKey);
    if (counter === undefined || !publicKey || !(await passkeys.recordUse(passkey.id, counter))) throw notVerified();
    const { clientDataJSON, authenticatorData, signature } = parsedResponse.response;
    return {
      ...{ publicKey, rpId: relyingParty.id },
      proof: { credentialId: passkey.credentialId.toString('base64url'), clientDataJSON, authenticatorData, signature },
    };
  }
}

/** Passkeys are bound to a host name, so they do not work at an IP address. */
const isIpAddress = ({ hostname }: URL): boolean => isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;

const notVerified = (): Error =>
  fault('verification_failed', 'The passkey signature is not valid for this Action. No decision was recorded.', {
    advice: 'Request the challenge again, and sign it with one of your passkeys.',
  });
