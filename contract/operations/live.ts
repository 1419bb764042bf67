// Links of the live view.
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
      'Addresses at which people watch a running session and, where they may, take control of it; one for the session and one for each open page. Ask again for fresh ones.',
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
    description: 'Every address that was given out for this session stops working, and who came by one is shown out.',
    credential: 'agentKey',
    scopes: ['browsers:connect'],
    isWrite: true,
    mount: 'native',
    params: SessionParams,
    responses: { 204: { description: 'They are revoked.' } },
    errors: ['not_found', 'session_not_running'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
