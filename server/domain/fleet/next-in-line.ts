// Selects the waiting creates that should be tried now, given the free slots of the hosts. The transaction that places
// a session makes the decision. This function only avoids attempts that the transaction would refuse. Pure.
import type { QueuePosition, WaitingCreate } from '../../engines/store/rows/line.ts';
import type { ApplicationId } from '../../kit/ids.ts';

export type QueuedCreate = QueuePosition & Pick<WaitingCreate, 'applicationId' | 'region' | 'why'>;

/**
 * Returns the places of the creates to try now. `rows` are in the order of the line. `freeSlots` contains the number of
 * free slots in each region.
 */
export function nextInLine(rows: readonly QueuedCreate[], freeSlots: ReadonlyMap<string, number>): ReadonlySet<number> {
  const remainingRoom = new Map(freeSlots);
  const nextPlaces = new Set<number>();
  /** Applications whose first create is held back by a limit of the application. Their other creates wait behind it. */
  const limitedApplications = new Set<ApplicationId>();
  for (const { place, applicationId, region, why } of rows) {
    if (limitedApplications.has(applicationId)) continue;
    if (why === 'host') {
      const fromRegion = regionFor(remainingRoom, region);
      if (fromRegion === undefined) continue;
      remainingRoom.set(fromRegion, (remainingRoom.get(fromRegion) ?? 0) - 1);
    } else limitedApplications.add(applicationId);
    nextPlaces.add(place);
  }
  return nextPlaces;
}

/** Returns the requested region if it has room. If no region was requested, returns the region with the most room. */
function regionFor(remainingRoom: ReadonlyMap<string, number>, region: string | null): string | undefined {
  const fittingRegions = [...remainingRoom].filter(([name, room]) => room > 0 && (region === null || name === region));
  return fittingRegions.sort(([, one], [, other]) => other - one)[0]?.[0];
}
