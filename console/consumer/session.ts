// Signs a consumer in on one of Berth's own pages, with the authorization code flow and PKCE, as any application does.
// At the end of the flow, the service sets a cookie.
import type { ConsumerTokens, StartedConsumerSession } from '../../contract/consumers.ts';
import type { PasskeyChallenge } from '../../contract/sign-in.ts';
import { askPasskey, supportsPasskeys } from '../src/api/passkeys.ts';
import { CommandError, sendCommand } from './parts.ts';

const VERIFIER_BYTES = 32;

interface StartedSignIn {
  readonly provider: string;
  readonly verifier: string;
  /** The query string of the page, which is restored after the sign-in. */
  readonly search: string;
}

/** Sends commands for the consumer who is signed in. */
export interface Session {
  readonly appId: string;
  readonly application: string;
  readonly send: <Body>(name: string, body?: object) => Promise<Body>;
  /** Returns the file in the response to a command. */
  readonly download: (name: string) => Promise<Blob>;
}

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');

const randomText = (): string => base64url(crypto.getRandomValues(new Uint8Array(VERIFIER_BYTES)));

const currentUrl = (): string => `${location.origin}${location.pathname}`;

/** The provider of the last sign-in in this browser. The cookie of the consumer session belongs to this provider. */
const providerOf = (appId: string): string => localStorage.getItem(`provider ${appId}`) ?? 'hosted';

/** Navigates to the sign-in page, which redirects to this page with a code. */
export async function startSignIn(appId: string, provider: string, parameters: object = {}): Promise<void> {
  const [verifier, state] = [randomText(), randomText()];
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  const startedSignIn: StartedSignIn = { provider, verifier, search: location.search };
  sessionStorage.setItem(`sign-in ${state}`, JSON.stringify(startedSignIn));
  const { authorizationUrl } = await sendCommand<StartedConsumerSession>(appId, provider, 'session.start', {
    ...{ redirectUri: currentUrl(), codeChallenge: base64url(new Uint8Array(digest)), state, transport: 'cookie' },
    ...parameters,
  });
  location.assign(authorizationUrl);
}

/** Exchanges the code in the address for the cookie, if this page started the sign-in. */
export async function finishSignIn(appId: string): Promise<void> {
  const query = new URLSearchParams(location.search);
  const [code, state, errorCode] = [query.get('code'), query.get('state'), query.get('error')];
  if (state === null) return;
  const storedText = sessionStorage.getItem(`sign-in ${state}`);
  sessionStorage.removeItem(`sign-in ${state}`);
  const startedSignIn: StartedSignIn | undefined = storedText === null ? undefined : JSON.parse(storedText);
  history.replaceState(undefined, '', location.pathname + (startedSignIn?.search ?? ''));
  if (!startedSignIn) return;
  if (errorCode !== null || code === null) throw new Error('The sign-in was not completed. Try again.');
  const { provider, verifier } = startedSignIn;
  await sendCommand<ConsumerTokens>(appId, provider, 'session.exchange', {
    ...{ code, codeVerifier: verifier, redirectUri: currentUrl() },
  });
  localStorage.setItem(`provider ${appId}`, provider);
}

/**
 * `isAboutResource`: whether the page shows one resource. If it does, status 404 is not treated as a sign-out, because
 * it can mean that the resource does not exist.
 */
export const isSignedOut = ({ status, code }: CommandError, isAboutResource: boolean): boolean =>
  (status === 401 && code !== 'insufficient_user_authentication') || (status === 404 && !isAboutResource);

export function sessionOf(appId: string, application: string): Session {
  const provider = providerOf(appId);
  const withProof = async <Body>(work: () => Promise<Body>): Promise<Body> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof CommandError) || error.code !== 'insufficient_user_authentication') throw error;
      await proveAgain(appId, provider, error);
      return work();
    }
  };
  return {
    ...{ appId, application },
    send: (name, body) => withProof(() => sendCommand(appId, provider, name, body)),
    download: name => withProof(() => sendCommand(appId, provider, name, {}, reply => reply.blob())),
  };
}

/** Asks for the passkey if the consumer has one. Otherwise leaves this page, so that the consumer signs in again. */
async function proveAgain(appId: string, provider: string, { details }: CommandError): Promise<void> {
  if (details.acrValues !== 'phr' || !supportsPasskeys()) {
    await startSignIn(appId, provider, { maxAge: 0 });
    return new Promise(() => {});
  }
  const challenge = await sendCommand<PasskeyChallenge>(appId, provider, 'passkeys.challenge');
  const response = await askPasskey(challenge);
  await sendCommand(appId, provider, 'session.stepUp', { ticket: challenge.ticket, response });
}
