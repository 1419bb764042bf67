// Requests sent by the hand-off page. The credential is the secret of the link, the lease token of the hand-off, or the
// cookie of a member.
import type { ClaimedHandoff, Handoff, HandoffOutcome } from '../../../contract/handoffs.ts';
import { NEEDS_STEP_UP, stepUp } from '../api/step-up.ts';
import { tabStore } from '../api/storage.ts';

export class HandoffError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Identifies the hand-off. Contains the secret of its link if the person followed a link. */
export interface HandoffLink {
  readonly id: string;
  readonly app: string;
  readonly secret: string | undefined;
}

/** Takes the secret out of the address, so that it is neither shown nor kept in the history. */
export function takeHandoffLink(): HandoffLink {
  const id = location.pathname.split('/')[2] ?? '';
  const app = new URLSearchParams(location.search).get('app') ?? '';
  const secret = location.hash.slice(1);
  const storageKey = `handoff-link ${id}`;
  if (secret !== '') {
    tabStore.setItem(storageKey, secret);
    history.replaceState(null, '', location.pathname + location.search);
  }
  return { id, app, secret: tabStore.getItem(storageKey) ?? undefined };
}

export const readHandoff = (handoffLink: HandoffLink): Promise<Handoff> =>
  send(handoffLink, 'GET', '', handoffLink.secret);

export const claimHandoff = (handoffLink: HandoffLink): Promise<ClaimedHandoff> =>
  send(handoffLink, 'POST', '/claim', handoffLink.secret, {});

export const renewLease = (handoffLink: HandoffLink, token: string): Promise<Handoff> =>
  send(handoffLink, 'POST', '/renew', token, {});

export const completeHandoff = (
  handoffLink: HandoffLink,
  token: string,
  body: { readonly outcome: HandoffOutcome; readonly note?: string },
): Promise<Handoff> => send(handoffLink, 'POST', '/complete', token, body);

export const giveBack = (handoffLink: HandoffLink, token: string): Promise<Handoff> =>
  send(handoffLink, 'POST', '/cancel', token, {});

async function send<T>(
  handoffLink: HandoffLink,
  method: string,
  action: string,
  bearer: string | undefined,
  body?: object,
): Promise<T> {
  const sendOnce = (): Promise<Response> =>
    fetch(`/v1/applications/${handoffLink.app}/handoffs/${handoffLink.id}${action}`, {
      method,
      headers: {
        ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  let response = await sendOnce();
  if (response.status === 401 && (await readErrorCode(response)) === NEEDS_STEP_UP) {
    await stepUp();
    response = await sendOnce();
  }
  if (response.ok) return (await response.json()) as T; // The contract defines this body.
  const { code, message } = await readError(response);
  throw new HandoffError(response.status, code, message);
}

const readError = async (response: Response): Promise<{ code: string; message: string }> => {
  const { code, message } = Object(await response.json().catch(() => ({})));
  return {
    code: String(code ?? ''),
    message: String(message ?? `The service responded with status ${response.status}.`),
  };
};

const readErrorCode = async (response: Response): Promise<string> => (await readError(response.clone())).code;
