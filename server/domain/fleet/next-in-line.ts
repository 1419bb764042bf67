// Which of the creates that wait should be tried now, given the free slots of the hosts. The transaction that places a session decides; this
// only saves attempts that it would refuse. Pure.
import type { Place, WaitingCreate } from '../../engines/store/rows/line.ts';
import type { ApplicationId } from '../../kit/ids.ts';

export type Standing = Place & Pick<WaitingCreate, 'applicationId' | 'region' | 'why'>;

/** `rows`: in the order of the line. `free`: the free slots of each region. */
export function nextInLine(rows: readonly Standing[], free: ReadonlyMap<string, number>): ReadonlySet<number> {
  const left = new Map(free);
  const next = new Set<number>();
  /** Applications whose first create waits for a limit of the application: the others wait behind it. */
  const limited = new Set<ApplicationId>();
  for (const { place, applicationId, region, why } of rows) {
    if (limited.has(applicationId)) continue;
    if (why === 'host') {
      const from = regionFor(left, region);
      if (from === undefined) continue;
      left.set(from, (left.get(from) ?? 0) - 1);
    } else limited.add(applicationId);
    next.add(place);
  }
  return next;
}

/** The one with the most room, if any will do. */
function regionFor(left: ReadonlyMap<string, number>, region: string | null): string | undefined {
  const fit = [...left].filter(([name, room]) => room > 0 && (region === null || name === region));
  return fit.sort(([, one], [, other]) => other - one)[0]?.[0];
}
