// Ends the sessions of a host whose lease has expired, with the status ERROR and the reason host_lost, and unlocks
// their contexts. No data of these sessions is saved to the contexts, so the newest version of each context does not
// change. Any host can do this, because only database rows are needed.
import type { ContextUses } from '../../engines/store/rows/contexts.ts';
import type { Hosts } from '../../engines/store/rows/hosts.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { DecidedEnd } from '../sessions/actors.ts';
import type { Endings } from '../sessions/endings.ts';
import type { Fleet } from './fleet.ts';

/** Interval of the check. With a lease of 12 seconds, the sessions of a lost host end within 15 seconds. */
export const LOST_CHECK_INTERVAL_MS = 1_000;
const BATCH_MAX = 200;

export const HOST_LOST: DecidedEnd = { status: 'ERROR', reason: 'host_lost' };

export interface LostHostsParts extends Pick<Runtime, 'clock' | 'log' | 'host'> {
  readonly fleet: Fleet;
  readonly rows: Hosts;
  readonly uses: ContextUses;
  readonly endings: Pick<Endings, 'end'>;
}

/** The clock task that ends the sessions of lost hosts. */
export async function endSessionsOfLostHosts(parts: LostHostsParts): Promise<{ lost: number; ended: number }> {
  const { fleet, rows, endings, log } = parts;
  if (!fleet.mayDeclareLost) return { lost: 0, ended: 0 };
  const lostHosts = await rows.markLost(fleet.leaseMs);
  for (const hostId of lostHosts) log.warn('fleet.host_lost', { hostId });
  if (lostHosts.length > 0) await fleet.refreshHosts();
  const orphans = await rows.orphans(BATCH_MAX);
  await Promise.all(orphans.map(id => endings.end(id, HOST_LOST)));
  await unlockContexts(parts);
  if (!fleet.isAlone || lostHosts.length > 0) await rows.reassignLostWork(parts.host);
  return { lost: lostHosts.length, ended: orphans.length };
}

async function unlockContexts({ rows, uses, clock, log }: LostHostsParts): Promise<void> {
  for (const host of await rows.lostHostsWithContexts())
    for (const session of await uses.ofHost(host)) {
      const use = await uses.get(session);
      if (!use) continue;
      const detail = { contextId: use.contextId, reason: 'the host of the session was lost' };
      await uses.fail({
        ...{ session, type: 'context.save_failed', at: clock.now(), actor: { kind: 'service' }, detail },
      });
      log.warn('context.unlocked', { sessionId: session, hostId: host });
    }
}
