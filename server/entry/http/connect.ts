// HTTP requests to the CDP address: discovery, and an error if the upgrade is missing. WebSockets are handled in entry/cdp.
import type { BrowserVersion } from '../../../contract/sessions.ts';
import { fault } from '../../domain/faults.ts';
import type { ConnectCredentials } from '../../domain/sessions/connect.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';

/** Checks the credential for this session, and returns what Chromium returns at /json/version. */
export type Discover = (sessionId: string, presented: ConnectCredentials) => Promise<BrowserVersion>;

export const connectHandlers = (discover: Discover) => ({
  discoverSession: async ({ params, query, presented }: In<'discoverSession'>): Promise<Answer> =>
    answer(await discover(params.id, { ...presented, signingKey: query.signingKey })),

  connectSession: async (_: In<'connectSession'>): Promise<Answer> => {
    throw fault('upgrade_required', 'This address accepts WebSocket connections only.', {
      advice:
        'Pass the complete connectUrl to a CDP client, for example chromium.connectOverCDP(connectUrl) or puppeteer.connect({ browserWSEndpoint: connectUrl }).',
    });
  },
});
