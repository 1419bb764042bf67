// HTTP handlers for live view addresses.
import type { LiveView } from '../../domain/live/live-view.ts';
import { type Answer, answer, nothing } from './answer.ts';
import type { In } from './bind.ts';

export const liveHandlers = (live: Pick<LiveView, 'urls' | 'revoke'>) => ({
  debugSession: async ({ caller, params, query }: In<'debugSession'>): Promise<Answer> =>
    answer(await live.urls(caller, params.id, query)),

  revokeDebug: async ({ caller, params }: In<'revokeDebug'>): Promise<Answer> => {
    await live.revoke(caller, params.id);
    return nothing();
  },
});
