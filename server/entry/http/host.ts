// HTTP handlers for this host, and for all hosts of the fleet.
import type { Host } from '../../domain/host/host.ts';
import type { Hosts } from '../../domain/host/hosts.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

export interface HostMethods {
  readonly thisHost: Pick<Host, 'read' | 'examine'>;
  readonly allHosts: Pick<Hosts, 'list' | 'sessions' | 'drain'>;
}

export const hostHandlers = ({ thisHost: one, allHosts: all }: HostMethods) => ({
  readHost: async ({ caller }: HandlerInput<'readHost'>): Promise<HttpResponse> => jsonResponse(await one.read(caller)),

  examineHost: async ({ caller }: HandlerInput<'examineHost'>): Promise<HttpResponse> =>
    jsonResponse(await one.examine(caller)),

  listHosts: async ({ caller }: HandlerInput<'listHosts'>): Promise<HttpResponse> =>
    jsonResponse(await all.list(caller)),

  listHostSessions: async ({ caller, params }: HandlerInput<'listHostSessions'>): Promise<HttpResponse> =>
    jsonResponse(await all.sessions(caller, params.hostId)),

  drainHost: async ({ caller, params, body }: HandlerInput<'drainHost'>): Promise<HttpResponse> =>
    jsonResponse(await all.drain(caller, params.hostId, body)),
});
