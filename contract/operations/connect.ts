// The ways to a browser over CDP.

import type { Operation } from '../operation.ts';
import { BrowserVersion, ConnectQuery, SessionParams } from '../sessions.ts';

export const CONNECT_OPERATIONS = {
  connectSession: {
    tag: 'Connect',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/connect',
    summary: 'Connect over CDP',
    description:
      'The WebSocket of a session: give the whole `connectUrl` to Playwright, Puppeteer or any CDP client. A session that is still PENDING is waited for, up to 30 seconds. Close codes: 1000 released, 4001 timed out, 4002 crashed, 4003 idle, 1001 the service restarts.',
    credential: 'connect',
    isWrite: false,
    mount: 'native',
    params: SessionParams,
    query: ConnectQuery,
    responses: { 101: { description: 'The WebSocket is open.' } },
    errors: ['not_found', 'session_ended', 'upgrade_required', 'client_limit', 'capacity'],
  },
  discoverSession: {
    tag: 'Connect',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/connect/json/version',
    alsoWithSlash: true,
    summary: 'Discover the CDP address',
    description:
      'For clients that are given the connect address as http(s) and look up the WebSocket address themselves. With a trailing slash as well.',
    credential: 'connect',
    isWrite: false,
    mount: 'native',
    params: SessionParams,
    query: ConnectQuery,
    responses: { 200: { description: 'What a browser answers at /json/version.', schema: BrowserVersion } },
    errors: ['not_found', 'session_ended'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
