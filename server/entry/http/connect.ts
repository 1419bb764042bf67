// HTTP handlers for the CDP address. They serve discovery, and respond with an error to connect requests without an
// upgrade. WebSockets are handled in entry/cdp.
import type { BrowserVersion } from '../../../contract/sessions.ts';
import { fault } from '../../domain/faults.ts';
import type { ConnectCredentials } from '../../domain/sessions/session-connector.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

/** Checks the credential for this session, and returns the content that Chromium serves at /json/version. */
export type Discover = (sessionId: string, credentials: ConnectCredentials) => Promise<BrowserVersion>;

export const connectHandlers = (discover: Discover) => ({
  discoverSession: async ({ params, query, presented }: HandlerInput<'discoverSession'>): Promise<HttpResponse> =>
    jsonResponse(await discover(params.id, { ...presented, signingKey: query.signingKey })),

  connectSession: async (_: HandlerInput<'connectSession'>): Promise<HttpResponse> => {
    throw fault('upgrade_required', 'This address accepts WebSocket connections only.', {
      advice:
        'Pass the complete connectUrl to a CDP client, for example chromium.connectOverCDP(connectUrl) or puppeteer.connect({ browserWSEndpoint: connectUrl }).',
    });
  },
});
