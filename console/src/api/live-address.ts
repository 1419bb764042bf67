// Where the live view of a running session is, on services that have one.
import type { ErrorBody } from '../../../contract/common.ts';
import { ApiError } from './api-error.ts';
import { urlOf } from './call.ts';
import { agentKey } from './credentials.ts';

const PATH = '/v1/browsers/sessions/{id}/debug';

export const offersLiveView = (): boolean => Object.values(BERTH_OPERATIONS).some(({ path }) => path === PATH);

/** Without its origin: the frame belongs to the one that this page came from, whatever the service calls itself. */
export async function readLiveAddress(app: string, id: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(urlOf(PATH, { id }), {
    headers: { authorization: `Bearer ${await agentKey(app)}` },
    signal,
  });
  const body: Partial<ErrorBody> & { debuggerUrl?: string } = await response.json().catch(() => ({}));
  if (!response.ok || !body.debuggerUrl) throw new ApiError(response.status, body, 'The session has no live view.');
  const { pathname, search, hash } = new URL(body.debuggerUrl, location.href);
  return `${pathname}${search}${hash}`;
}
