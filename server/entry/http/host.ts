// HTTP handlers for this host, and for all hosts of the fleet.
import type { Host } from '../../domain/host/host.ts';
import type { Hosts } from '../../domain/host/hosts.ts';
import type { HandlerInput } from './bind.ts';
import { type HttpResponse, jsonResponse } from './http-response.ts';

export interface HostMethods {
  readonly thisHost: Pick<Host, 'read' | 'examine'>;
  readonly allHosts: Pick<Hosts, 'list' | 'sessions' | 'drain'>;
}

export const hostHandlers = ({ thisHost, allHosts }: HostMethods) => ({
  readHost: async ({ caller }: HandlerInput<'readHost'>): Promise<HttpResponse> =>
    jsonResponse(await thisHost.read(caller)),

  examineHost: async ({ caller }: HandlerInput<'examineHost'>): Promise<HttpResponse> =>
    jsonResponse(await thisHost.examine(caller)),

  listHosts: async ({ caller }: HandlerInput<'listHosts'>): Promise<HttpResponse> =>
    jsonResponse(await allHosts.list(caller)),

  listHostSessions: async ({ caller, params }: HandlerInput<'listHostSessions'>): Promise<HttpResponse> =>
    jsonResponse(await allHosts.sessions(caller, params.hostId)),

  drainHost: async ({ caller, params, body }: HandlerInput<'drainHost'>): Promise<HttpResponse> =>
    jsonResponse(await allHosts.drain(caller, params.hostId, body)),
});
