// Who is signed in. The personal access token stands in this tab's sessionStorage, so that a reload keeps it and closing
// the tab ends it. Browser routes take an agent key only: one for each application is issued for an hour, kept beside the token so
// that a reload uses it again, renewed before it ends, and revoked when the user signs out.
import type { IssuedAgentKey } from '../../../contract/agent-keys.ts';
import { ApiError } from './api-error.ts';

const STORED = 'berth.token';
const STORED_KEYS = 'berth.keys';
const KEY_LIFE_MS = 3_600_000;
const RENEW_BEFORE_MS = 300_000;
/** The name by which the list of keys knows those of consoles. */
export const CONSOLE_KEY_NAME = 'Console';

interface HeldKey {
  readonly id: string;
  readonly key: string;
  readonly untilMs: number;
}

let signedIn: string | undefined = sessionStorage.getItem(STORED) ?? undefined;
let farewell: string | undefined;
/** A token that came in a link while another one was signed in. */
let offered: string | undefined;
const keys = storedKeys();
const watching = new Set<() => void>();

export const token = (): string | undefined => signedIn;

/** Why the last sign-in ended, when it was not the user who ended it. */
export const signOutReason = (): string | undefined => farewell;

export function onSignedIn(listener: () => void): () => void {
  watching.add(listener);
  return () => watching.delete(listener);
}

/** A link of `berth console` carries its token in the fragment; it is taken out of the address before anything else. Whoever is
 * signed in already is asked before they become somebody else: anybody can write such a link. */
export function takeTokenFromAddress(): void {
  const found = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!found) return;
  history.replaceState(null, '', location.pathname + location.search);
  if (signedIn === undefined || signedIn === found) return signIn(found);
  offered = found;
  tell();
}

export const offeredToken = (): string | undefined => offered;

/** Signs in with the token of the link, or forgets it. */
export function answerOffer(take: boolean): void {
  const found = offered;
  offered = undefined;
  if (!take || found === undefined) return tell();
  signOut();
  signIn(found);
}

/** Asks the API about a token before it is kept. */
export async function tryToken(text: string): Promise<void> {
  const response = await fetch('/v1/account/tokens/current', { headers: { authorization: `Bearer ${text}` } });
  if (response.ok) return;
  const body: unknown = await response.json().catch(() => ({}));
  throw new ApiError(response.status, Object(body), 'The token could not be checked.');
}

export function signIn(text: string): void {
  signedIn = text;
  farewell = undefined;
  sessionStorage.setItem(STORED, text);
  tell();
}

export function signOut(reason?: string): void {
  revokeKeys();
  signedIn = undefined;
  farewell = reason;
  sessionStorage.removeItem(STORED);
  tell();
}

const tell = (): void => {
  for (const listener of watching) listener();
};

// ---- agent keys of this tab ------------------------------------------------------------------------------------------

export async function agentKey(app: string): Promise<string> {
  const held = await keys.get(app)?.catch(() => undefined);
  if (held && held.untilMs - Date.now() > RENEW_BEFORE_MS) return held.key;
  const issued = issueKey(app);
  keys.set(app, issued);
  issued.catch(() => keys.delete(app));
  const { key } = await issued;
  await storeKeys();
  if (held) void revokeKey(app, held.id, false); // a live view of this tab may be open under it
  return key;
}

export function forgetAgentKey(app: string): void {
  keys.delete(app);
  void storeKeys();
}

/** What the tab held before it was loaded again. */
function storedKeys(): Map<string, Promise<HeldKey>> {
  const stored = JSON.parse(sessionStorage.getItem(STORED_KEYS) ?? '[]') as Array<[string, HeldKey]>; // storeKeys has written it
  return new Map(stored.map(([app, held]) => [app, Promise.resolve(held)]));
}

async function storeKeys(): Promise<void> {
  const issued = await Promise.all(
    [...keys].map(([app, held]) => held.then(key => [[app, key] as const]).catch(() => [])),
  );
  if (signedIn !== undefined) sessionStorage.setItem(STORED_KEYS, JSON.stringify(issued.flat()));
}

async function issueKey(app: string): Promise<HeldKey> {
  const untilMs = Date.now() + KEY_LIFE_MS;
  const response = await fetch(`/v1/applications/${encodeURIComponent(app)}/agent-keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${signedIn ?? ''}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: CONSOLE_KEY_NAME, expiresAt: new Date(untilMs).toISOString() }),
  });
  const body: unknown = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, Object(body), 'No agent key could be issued for this tab.');
  const { id, key } = body as IssuedAgentKey; // What a 201 of this operation holds.
  return { id, key, untilMs };
}

const revokeKey = (app: string, id: string, closeConnections: boolean): Promise<unknown> =>
  fetch(`/v1/applications/${encodeURIComponent(app)}/agent-keys/${id}?closeConnections=${closeConnections}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${signedIn ?? ''}` },
    keepalive: true,
  }).catch(() => undefined);

/** Keys of whoever signs out do not outlive it; those of a tab that is closed end within the hour. */
function revokeKeys(): void {
  for (const [app, issued] of keys) void issued.then(({ id }) => revokeKey(app, id, true)).catch(() => undefined);
  keys.clear();
  sessionStorage.removeItem(STORED_KEYS);
}
