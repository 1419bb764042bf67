// Connects the hosts of a fleet: a host forwards requests to other hosts, and ends the sessions of hosts that are lost.
import { type Forwarding, noForwarding } from '../domain/fleet/forwarding.ts';
import { acceptForwarded, HostTokens } from '../domain/fleet/host-tokens.ts';
import { endSessionsOfLostHosts, HOST_LOST, LOST_CHECK_INTERVAL_MS } from '../domain/fleet/lost-hosts.ts';
import { Owners } from '../domain/fleet/owners.ts';
import type { Endings } from '../domain/sessions/endings.ts';
import type { LiveSessions } from '../domain/sessions/live.ts';
import type { StartingSessions } from '../domain/sessions/starting.ts';
import { Forwarder } from '../entry/forward/forwarder.ts';
import type { SessionId } from '../kit/ids.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Task } from '../kit/task.ts';
import type { Admission } from './admission.ts';
import type { Foundation } from './foundation.ts';

export interface ForwardingDeps {
  readonly liveSessions: LiveSessions;
  readonly isStarting: (session: SessionId) => boolean;
  readonly admission: Pick<Admission, 'limits' | 'line'>;
  readonly onRefusal: Forwarding['countRefusal'];
}

export function openForwarding(
  { host, clock, log }: Runtime,
  { config, secret, scope, store, fleet, peerTls }: Foundation,
  { liveSessions, isStarting, admission, onRefusal: refused }: ForwardingDeps,
): Forwarding {
  if (!fleet.hasLease) return noForwarding(host);
  const tokens = new HostTokens(secret, host, clock);
  const isHere = (session: SessionId): boolean => liveSessions.get(session) !== undefined || isStarting(session);
  const owners = new Owners({ fleet, host, rows: store.hosts, isHere });
  const forwarder = new Forwarder({
    ...{ tokens, trustedProxies: config.trustedProxies, clock, log },
    authorities: () => peerTls.authorities,
    isLiving: ({ id }) => fleet.isLiving(id),
  });
  scope.own(forwarder);
  fleet.onHostsRead(() => forwarder.dropLostHosts());
  return {
    get isAlone() {
      return fleet.isAlone;
    },
    host,
    acceptForwarded: request => acceptForwarded(tokens, request),
    otherOwner: (kind, id, application) => owners.otherOwner(kind, id, application),
    chooseHost: (region, triedHosts) => {
      const chosenHost = fleet.choose(region, triedHosts);
      return chosenHost === host ? 'here' : chosenHost && fleet.peer(chosenHost);
    },
    regionFor: region => (region !== undefined && fleet.roomByRegion.has(region) ? region : undefined),
    pass: (to, request, options) => forwarder.pass(to, request, options),
    wait: async request => {
      const { maxWaiting } = await admission.limits.effective(request.application);
      return admission.line.enter({ ...request, maxWaiting });
    },
    countRefusal: refused,
    passUpgrade: (...upgrade) => forwarder.passUpgrade(...upgrade),
  };
}

export interface FleetTaskDeps {
  readonly endings: Endings;
  readonly liveSessions: LiveSessions;
  readonly starting: StartingSessions;
  readonly warm: () => number;
}

/**
 * Starts to watch leases. If a host loses its lease, its sessions are ended. This applies to this host and to other
 * hosts.
 */
export function watchLeases(
  { clock, log, host }: Runtime,
  { fleet, store }: Foundation,
  { endings, liveSessions, starting, warm }: FleetTaskDeps,
): readonly Task[] {
  if (!fleet.hasLease) return [];
  const endSessions = async (): Promise<void> => {
    const runningSessions = liveSessions.all;
    const boxEnds = Promise.allSettled(runningSessions.map(({ box }) => box.end()));
    const ids = [...starting.ids];
    await Promise.allSettled([boxEnds, ...ids.map(id => starting.cancel(id))]);
    await Promise.allSettled([...runningSessions.map(({ id }) => id), ...ids].map(id => endings.end(id, HOST_LOST)));
  };
  fleet.begin({ warm, endSessions });
  const parts = { fleet, host, rows: store.hosts, uses: store.contextUses, endings, clock, log };
  return [{ name: 'end_lost_hosts', everyMs: LOST_CHECK_INTERVAL_MS, run: () => endSessionsOfLostHosts(parts) }];
}
