// HTTP handlers for live view addresses.
import type { LiveView } from '../../domain/live/live-view.ts';
import type { HandlerInput } from './bind.ts';
import { emptyResponse, type HttpResponse, jsonResponse } from './http-response.ts';

export const liveHandlers = (liveView: Pick<LiveView, 'urls' | 'revoke'>) => ({
  debugSession: async ({ caller, params, query }: HandlerInput<'debugSession'>): Promise<HttpResponse> =>
    jsonResponse(await liveView.urls(caller, params.id, query)),

  revokeDebug: async ({ caller, params }: HandlerInput<'revokeDebug'>): Promise<HttpResponse> => {
    await liveView.revoke(caller, params.id);
    return emptyResponse();
  },
});
