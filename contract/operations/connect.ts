// CDP addresses of browsers.

import type { Operation } from '../operation.ts';
import { BrowserVersion, ConnectQuery, SessionParams } from '../sessions.ts';

export const CONNECT_OPERATIONS = {
  connectSession: {
    tag: 'Connect',
    method: 'GET',
    path: '/v1/browsers/sessions/{id}/connect',
    summary: 'Connect over CDP',
    description:
      'The WebSocket of a session. Pass the complete `connectUrl` to Playwright, Puppeteer or another CDP client. If the session is still PENDING, the connection waits up to 30 seconds. Close codes: 1000 the session ended normally, 1001 the service is restarting, 1013 the client reads too slowly, 4001 the session timed out or the credential ended, 4002 the session ended with the status ERROR, 4003 no command for ten minutes.',
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
    allowsTrailingSlash: true,
    summary: 'Discover the CDP address',
    description:
      'For clients that take an http(s) address and look up the WebSocket address themselves. Also served with a trailing slash.',
    credential: 'connect',
    isWrite: false,
    mount: 'native',
    params: SessionParams,
    query: ConnectQuery,
    responses: {
      200: { description: 'The response that a browser returns at /json/version.', schema: BrowserVersion },
    },
    errors: ['not_found', 'session_ended', 'capacity'],
  },
} as const satisfies Readonly<Record<string, Operation>>;
