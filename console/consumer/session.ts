// Signs a consumer in on a page of ours: authorization code with PKCE, as for any application, and a cookie at the end.
import type { ConsumerTokens, StartedConsumerSession } from '../../contract/consumers.ts';
import { command } from './parts.ts';

const VERIFIER_BYTES = 32;

interface Begun {
  readonly provider: string;
  readonly verifier: string;
}

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');

const randomText = (): string => base64url(crypto.getRandomValues(new Uint8Array(VERIFIER_BYTES)));

const here = (): string => `${location.origin}${location.pathname}`;

/** Leaves the page. It comes back with a code. */
export async function startSignIn(appId: string, provider: string, more: object = {}): Promise<void> {
  const [verifier, state] = [randomText(), randomText()];
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  const begun: Begun = { provider, verifier };
  sessionStorage.setItem(`sign-in ${state}`, JSON.stringify(begun));
  const { authorizationUrl } = await command<StartedConsumerSession>(appId, provider, 'session.start', {
    ...{ redirectUri: here(), codeChallenge: base64url(new Uint8Array(digest)), state, transport: 'cookie' },
    ...more,
  });
  location.assign(authorizationUrl);
}

/** Exchanges the code in the address for the cookie. Returns the provider, if this page began the sign-in. */
export async function finishSignIn(appId: string): Promise<string | undefined> {
  const query = new URLSearchParams(location.search);
  const [code, state, failed] = [query.get('code'), query.get('state'), query.get('error')];
  if (state === null) return undefined;
  const kept = sessionStorage.getItem(`sign-in ${state}`);
  sessionStorage.removeItem(`sign-in ${state}`);
  history.replaceState(undefined, '', location.pathname);
  if (kept === null) return undefined;
  if (failed !== null || code === null) throw new Error('The sign-in was not completed. Try again.');
  const { provider, verifier }: Begun = JSON.parse(kept);
  await command<ConsumerTokens>(appId, provider, 'session.exchange', {
    ...{ code, codeVerifier: verifier, redirectUri: here() },
  });
  sessionStorage.setItem(`provider ${appId}`, provider);
  return provider;
}
