// Reads the address of a session's live view, if the service offers live views.
import type { ErrorBody } from '../../../contract/common.ts';
import { ApiError } from './api-error.ts';
import { urlOf } from './call.ts';
import { obtainAgentKey } from './credentials.ts';

const PATH = '/v1/browsers/sessions/{id}/debug';

export const offersLiveView = (): boolean => Object.values(BERTH_OPERATIONS).some(({ path }) => path === PATH);

/** Returns an address relative to the origin of this page, because the frame policy allows only this origin. */
export async function readLiveAddress(app: string, id: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(urlOf(PATH, { id }), {
    headers: { authorization: `Bearer ${await obtainAgentKey(app)}` },
    signal,
  });
  const body: Partial<ErrorBody> & { debuggerUrl?: string } = await response.json().catch(() => ({}));
  if (!response.ok || !body.debuggerUrl)
    throw new ApiError(response.status, body, 'The live view could not be opened. Reload the page.');
  const { pathname, search, hash } = new URL(body.debuggerUrl, location.href);
  return `${pathname}${search}${hash}`;
}
