// Knows who is signed in: a person, whose cookie the browser stores and sends, or a user with a personal access token.
// The token is in sessionStorage, so that it survives a reload but not the closing of the tab. Browser operations
// require an agent key. The console issues one per application for an hour, stores it beside the token, renews it
// before it expires, and revokes it on sign-out.
import type { IssuedAgentKey } from '../../../contract/agent-keys.ts';
import { ApiError } from './api-error.ts';
import { tabStore } from './storage.ts';

const TOKEN_STORAGE_KEY = 'berth.token';
const KEYS_STORAGE_KEY = 'berth.keys';
const KEY_LIFE_MS = 3_600_000;
const RENEW_MARGIN_MS = 300_000;
/** The name of agent keys that the console issues, as shown in the list of keys. */
export const CONSOLE_KEY_NAME = 'Console';

interface ConsoleKey {
  readonly id: string;
  readonly key: string;
  readonly untilMs: number;
}

/**
 * `person`: signed in with the cookie. `unknown`: it is not known yet whether there is a cookie. Undefined: signed out.
 */
type SignIn = { readonly token: string } | 'person' | 'unknown' | undefined;

const storedToken = tabStore.getItem(TOKEN_STORAGE_KEY);
let currentSignIn: SignIn = storedToken === null ? 'unknown' : { token: storedToken };
let signOutReasonText: string | undefined;
/** A token from a link that was opened while the user was already signed in, with another token or as a person. */
let tokenFromLink: string | undefined;
const keys = readStoredKeys();
/** Keys that are being issued, by application, so that concurrent calls share one. */
const pendingKeys = new Map<string, Promise<ConsoleKey>>();
const listeners = new Set<() => void>();

export const signInState = (): 'signed_in' | 'signed_out' | 'unknown' =>
  currentSignIn === undefined ? 'signed_out' : currentSignIn === 'unknown' ? 'unknown' : 'signed_in';

export const isPerson = (): boolean => currentSignIn === 'person';

const currentToken = (): string | undefined => (typeof currentSignIn === 'object' ? currentSignIn.token : undefined);

/** Headers for operations of the account. Empty for a person, because the browser sends the cookie. */
export function accountHeaders(): Record<string, string> {
  const text = currentToken();
  return text === undefined ? {} : { authorization: `Bearer ${text}` };
}

/** Checks with a request whether this browser has the cookie of a person who is signed in. */
export async function detectHumanSession(): Promise<void> {
  if (currentSignIn !== 'unknown') return;
  const response = await fetch('/v1/account').catch(() => undefined);
  if (currentSignIn !== 'unknown') return; // signed in meanwhile
  currentSignIn = response?.ok ? 'person' : undefined;
  notify();
}

/** Called after a sign-in whose response has set the cookie. */
export function markSignedInAsPerson(): void {
  currentSignIn = 'person';
  signOutReasonText = undefined;
  tabStore.removeItem(TOKEN_STORAGE_KEY);
  notify();
}

/** Why the user was signed out, if the user did not choose to sign out. */
export const signOutReason = (): string | undefined => signOutReasonText;

/** Calls the listener after every sign-in, sign-out and offer of a token. Returns a function that removes it. */
export function onSignInChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Takes the token out of the fragment of a `berth console` link. If the user is already signed in, with another token
 * or as a person, the user is asked first, because anyone can make such a link.
 */
export function takeTokenFromAddress(): void {
  const linkToken = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!linkToken) return;
  history.replaceState(null, '', location.pathname + location.search);
  if (typeof currentSignIn === 'object' ? currentSignIn.token === linkToken : currentSignIn !== 'person')
    return signIn(linkToken);
  tokenFromLink = linkToken;
  notify();
}

export const offeredToken = (): string | undefined => tokenFromLink;

/** Signs in with the token of the link if `isAccepted` is true; otherwise discards the token. */
export function answerOffer(isAccepted: boolean): void {
  const linkToken = tokenFromLink;
  tokenFromLink = undefined;
  if (!isAccepted || linkToken === undefined) return notify();
  signOut();
  signIn(linkToken);
}

/** Checks a token with the API before it is stored. */
export async function checkToken(text: string): Promise<void> {
  const response = await fetch('/v1/account/tokens/current', { headers: { authorization: `Bearer ${text}` } });
  if (response.ok) return;
  const body: unknown = await response.json().catch(() => ({}));
  throw new ApiError(response.status, Object(body), 'The token could not be checked. Try again.');
}

export function signIn(text: string): void {
  currentSignIn = { token: text };
  signOutReasonText = undefined;
  tabStore.setItem(TOKEN_STORAGE_KEY, text);
  notify();
}

export function signOut(reason?: string): void {
  const revocations = revokeKeys();
  if (currentSignIn === 'person' && reason === undefined) endSessionAfter(revocations);
  currentSignIn = undefined;
  signOutReasonText = reason;
  tabStore.removeItem(TOKEN_STORAGE_KEY);
  notify();
}

/**
 * Ends the human session after the keys have been revoked, because revoking them requires its cookie. If the user
 * leaves the page before that, ends the human session then.
 */
function endSessionAfter(keyRevocations: Promise<unknown>): void {
  let isSent = false;
  const sendSignOut = (): void => {
    if (isSent) return;
    isSent = true;
    removeEventListener('pagehide', sendSignOut);
    if (isPerson()) return; // The user has signed in again, so the cookie belongs to the new human session.
    void fetch('/v1/account/sign-out', { method: 'POST', keepalive: true }).catch(() => undefined);
  };
  addEventListener('pagehide', sendSignOut);
  void keyRevocations.then(sendSignOut);
}

const notify = (): void => {
  for (const listener of listeners) listener();
};

// ---- agent keys of this tab ------------------------------------------------------------------------------------------

export async function obtainAgentKey(app: string): Promise<string> {
  const currentKey = keys.get(app);
  if (currentKey && currentKey.untilMs - Date.now() > RENEW_MARGIN_MS) return currentKey.key;
  const { key } = await (pendingKeys.get(app) ?? renewKey(app, currentKey));
  return key;
}

async function renewKey(app: string, formerKey: ConsoleKey | undefined): Promise<ConsoleKey> {
  const keyPromise = issueKey(app);
  pendingKeys.set(app, keyPromise);
  try {
    const key = await keyPromise;
    if (pendingKeys.get(app) !== keyPromise) return key; // signed out meanwhile
    keys.set(app, key);
    storeKeys();
    // The connections of the former key stay open, because a live view may use them.
    if (formerKey) void revokeKey(app, formerKey.id, false);
    return key;
  } finally {
    if (pendingKeys.get(app) === keyPromise) pendingKeys.delete(app);
  }
}

export function forgetAgentKey(app: string): void {
  keys.delete(app);
  storeKeys();
}

/** The keys that were stored before the page was reloaded. */
function readStoredKeys(): Map<string, ConsoleKey> {
  // The stored value was written by storeKeys.
  return new Map(JSON.parse(tabStore.getItem(KEYS_STORAGE_KEY) ?? '[]') as Array<[string, ConsoleKey]>);
}

function storeKeys(): void {
  if (currentSignIn !== undefined) tabStore.setItem(KEYS_STORAGE_KEY, JSON.stringify([...keys]));
}

async function issueKey(app: string): Promise<ConsoleKey> {
  const untilMs = Date.now() + KEY_LIFE_MS;
  const response = await fetch(`/v1/applications/${encodeURIComponent(app)}/agent-keys`, {
    method: 'POST',
    headers: { ...accountHeaders(), 'content-type': 'application/json' },
    body: JSON.stringify({ name: CONSOLE_KEY_NAME, expiresAt: new Date(untilMs).toISOString() }),
  });
  const body: unknown = await response.json().catch(() => ({}));
  if (!response.ok)
    throw new ApiError(response.status, Object(body), 'No agent key could be issued for this tab. Reload the page.');
  const { id, key } = body as IssuedAgentKey; // The contract defines the body of a successful response.
  return { id, key, untilMs };
}

const revokeKey = (
  app: string,
  id: string,
  closeConnections: boolean,
  headers: Readonly<Record<string, string>> = accountHeaders(),
): Promise<unknown> =>
  fetch(`/v1/applications/${encodeURIComponent(app)}/agent-keys/${id}?closeConnections=${closeConnections}`, {
    method: 'DELETE',
    headers,
    keepalive: true,
  }).catch(() => undefined);

/** Revokes the keys, including those still being issued. The keys of a closed tab are not revoked, but expire soon. */
export function revokeKeys(): Promise<unknown> {
  const headers = accountHeaders(); // Read now, because a sign-out clears the token before the keys are revoked.
  const keyPromises = [...[...keys].map(([app, key]) => [app, Promise.resolve(key)] as const), ...pendingKeys];
  keys.clear();
  pendingKeys.clear();
  tabStore.removeItem(KEYS_STORAGE_KEY);
  return Promise.allSettled(keyPromises.map(async ([app, key]) => revokeKey(app, (await key).id, true, headers)));
}
