// Chooses the host that should take a session: a host with a free slot, in the requested region, with the lowest load.
// Among equal hosts, the host that received the request is preferred, because nothing has to be passed on. The next
// preference is a host with a warm browser.
import type { LivingHost } from '../../engines/store/rows/hosts.ts';
import type { HostId } from '../../kit/ids.ts';

export interface ChoiceOptions {
  readonly ownHost: HostId;
  readonly region?: string;
  /** Number of sessions that were placed on each host since the number of its used slots was last read. */
  readonly placedCounts: ReadonlyMap<HostId, number>;
}

/**
 * Returns the host that should take a session, or undefined if no host takes sessions. A host without a free slot is
 * chosen only if no host has a free slot. The create then waits there.
 */
export function selectHost(
  hosts: readonly LivingHost[],
  { ownHost, region, placedCounts }: ChoiceOptions,
): HostId | undefined {
  const openHosts = hosts.filter(takesSessions);
  const hostsInRegion = region === undefined ? openHosts : openHosts.filter(host => host.region === region);
  const eligibleHosts = hostsInRegion.length > 0 ? hostsInRegion : openHosts;
  const hostsWithRoom = eligibleHosts.filter(host => roomOf(host, placedCounts) > 0);
  const candidates = hostsWithRoom.length > 0 ? hostsWithRoom : eligibleHosts;
  const [bestHost] = [...candidates].sort(
    (one, other) =>
      loadOf(one, placedCounts) - loadOf(other, placedCounts) ||
      Number(other.id === ownHost) - Number(one.id === ownHost) ||
      Number(other.warm > 0) - Number(one.warm > 0) ||
      (one.id < other.id ? -1 : 1),
  );
  return bestHost?.id;
}

export const roomOf = (host: LivingHost, placedCounts: ReadonlyMap<HostId, number>): number =>
  takesSessions(host) ? host.slots - host.used - (placedCounts.get(host.id) ?? 0) : 0;

/** Returns the number of free slots of the hosts that take sessions, by region. */
export function roomByRegion(
  hosts: readonly LivingHost[],
  placedCounts: ReadonlyMap<HostId, number>,
): Map<string, number> {
  const roomCounts = new Map<string, number>();
  for (const host of hosts)
    if (takesSessions(host))
      roomCounts.set(host.region, (roomCounts.get(host.region) ?? 0) + Math.max(0, roomOf(host, placedCounts)));
  return roomCounts;
}

const takesSessions = ({ slots, draining, state }: LivingHost): boolean => slots > 0 && !draining && state === 'up';

const loadOf = (host: LivingHost, placedCounts: ReadonlyMap<HostId, number>): number =>
  (host.used + (placedCounts.get(host.id) ?? 0)) / host.slots;
