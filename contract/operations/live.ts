// Addresses of the live view.
import { DebugQuery, DebugUrls } from '../live.ts';
import type { Operation } from '../operation.ts';
import { SessionParams } from '../sessions.ts';

export const LIVE_OPERATIONS = {
  debugSession: {
    tag: 'Live view',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/debug',
    summary: 'Get live view addresses',
    description:
      'Returns addresses at which people can watch a running session and, if permitted, take control of it: one for the session and one for each open page. Send the request again to get new addresses.',
    credential: 'agentKey',
    scopes: ['browsers:connect'],
    isWrite: false,
    mount: 'both',
    params: SessionParams,
    query: DebugQuery,
    responses: { 200: { description: 'The addresses.', schema: DebugUrls } },
    errors: ['not_found', 'session_not_running'],
  },
  revokeDebug: {
    tag: 'Live view',
    method: 'DELETE',
    path: '/v1/browsers/sessions/{id}/debug',
    summary: 'Revoke live view addresses',
    description:
      'Revokes every live view address of this session. Viewers who are connected through one of them are disconnected.',
    credential: 'agentKey',
    scopes: ['browsers:connect'],
    isWrite: true,
    mount: 'native',
    params: SessionParams,
    responses: { 204: { description: 'The addresses are revoked.' } },
    errors: ['not_found', 'session_not_running'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
