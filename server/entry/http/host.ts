// HTTP handlers for this host, and for all hosts of the fleet.
import type { Host } from '../../domain/host/host.ts';
import type { Hosts } from '../../domain/host/hosts.ts';
import { type Answer, answer } from './answer.ts';
import type { In } from './bind.ts';

export interface HostVerbs {
  readonly one: Pick<Host, 'read' | 'examine'>;
  readonly all: Pick<Hosts, 'list' | 'sessions' | 'drain'>;
}

export const hostHandlers = ({ one, all }: HostVerbs) => ({
  readHost: async ({ caller }: In<'readHost'>): Promise<Answer> => answer(await one.read(caller)),

  examineHost: async ({ caller }: In<'examineHost'>): Promise<Answer> => answer(await one.examine(caller)),

  listHosts: async ({ caller }: In<'listHosts'>): Promise<Answer> => answer(await all.list(caller)),

  listHostSessions: async ({ caller, params }: In<'listHostSessions'>): Promise<Answer> =>
    answer(await all.sessions(caller, params.hostId)),

  drainHost: async ({ caller, params, body }: In<'drainHost'>): Promise<Answer> =>
    answer(await all.drain(caller, params.hostId, body)),
});
