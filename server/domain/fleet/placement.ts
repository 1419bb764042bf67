// Chooses the host that should take a session: one with a free slot, in the requested region, least loaded first. Among
// equal hosts, the host that received the request is preferred, because nothing has to be passed on, then one with a
// warm browser.
import type { LivingHost } from '../../engines/store/rows/hosts.ts';
import type { HostId } from '../../kit/ids.ts';

export interface ChoiceOptions {
  readonly own: HostId;
  readonly region?: string;
  /** Sessions that were placed since the use of the hosts was read. */
  readonly placed: ReadonlyMap<HostId, number>;
}

/**
 * Returns the host that should take a session, or undefined if no host takes sessions. A host without a free slot is
 * chosen only if no host has one; creates then wait there.
 */
export function choose(hosts: readonly LivingHost[], { own, region, placed }: ChoiceOptions): HostId | undefined {
  const openHosts = hosts.filter(isOpen);
  const hostsInRegion = region === undefined ? openHosts : openHosts.filter(host => host.region === region);
  const eligibleHosts = hostsInRegion.length > 0 ? hostsInRegion : openHosts;
  const hostsWithRoom = eligibleHosts.filter(host => roomOf(host, placed) > 0);
  const candidates = hostsWithRoom.length > 0 ? hostsWithRoom : eligibleHosts;
  const [best] = [...candidates].sort(
    (one, other) =>
      loadOf(one, placed) - loadOf(other, placed) ||
      Number(other.id === own) - Number(one.id === own) ||
      Number(other.warm > 0) - Number(one.warm > 0) ||
      (one.id < other.id ? -1 : 1),
  );
  return best?.id;
}

export const roomOf = (host: LivingHost, placedCounts: ReadonlyMap<HostId, number>): number =>
  isOpen(host) ? host.slots - host.used - (placedCounts.get(host.id) ?? 0) : 0;

/** Free slots of the hosts that take sessions, by region. */
export function roomByRegion(
  hosts: readonly LivingHost[],
  placedCounts: ReadonlyMap<HostId, number>,
): Map<string, number> {
  const rooms = new Map<string, number>();
  for (const host of hosts)
    if (isOpen(host)) rooms.set(host.region, (rooms.get(host.region) ?? 0) + Math.max(0, roomOf(host, placedCounts)));
  return rooms;
}

const isOpen = ({ slots, draining, state }: LivingHost): boolean => slots > 0 && !draining && state === 'up';

const loadOf = (host: LivingHost, placedCounts: ReadonlyMap<HostId, number>): number =>
  (host.used + (placedCounts.get(host.id) ?? 0)) / host.slots;
