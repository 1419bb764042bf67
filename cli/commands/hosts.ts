// `berth hosts`: lists the hosts that share this database, drains them so that they accept no new sessions, undoes a
// drain, and removes hosts.
import { systemClock } from '../../server/kit/clock.ts';
import type { Local } from '../../server/local.ts';
import { CommandFailed } from '../command-failed.ts';
import { EXIT } from '../exit-codes.ts';
import { printJson, type Terminal } from '../terminal.ts';
import { withLocal } from './keys.ts';
import type { JsonOption } from './tokens.ts';

const POLL_INTERVAL_MS = 1_000;

export interface DrainOptions extends JsonOption {
  readonly wait: number;
}

export function listHosts(terminal: Terminal, options: JsonOption): Promise<void> {
  return withLocal(terminal, async local => {
    const hosts = (await local.listHosts()).map(({ startedAt, isFresh, url, version, leaseUntil: _, ...host }) => ({
      ...host,
      ...{ url: url ?? undefined, version: version ?? undefined },
      state: host.state === 'up' && !isFresh ? 'lost' : host.state,
      startedAt: startedAt.toISOString(),
    }));
    if (options.json) return printJson(terminal, hosts);
    for (const { id, state, draining, region, used, slots, url = '', version = '' } of hosts)
      terminal.print(
        `${id}  ${draining ? `${state}, draining` : state}  ${used} of ${slots} slots  ${region}  ${version}  ${url}\n`,
      );
  });
}

/** Drains the host, and waits at most `wait` seconds until its sessions have ended. */
export function drainHost(terminal: Terminal, id: string, { wait, json }: DrainOptions): Promise<void> {
  return withLocal(terminal, async local => {
    await local.drainHost(id, true);
    const deadlineMs = systemClock.monotonicMs() + 1000 * wait;
    for (;;) {
      const usedCount = await countUsedSlots(local, id);
      if (usedCount === 0) {
        if (json) return printJson(terminal, { id, draining: true, used: 0 });
        return terminal.print(`Host ${id} has no sessions and receives no new sessions.\n`);
      }
      if (systemClock.monotonicMs() >= deadlineMs)
        throw new CommandFailed(
          EXIT.failed,
          `Host ${id} receives no new sessions, but still has ${usedCount}. Wait longer with --wait SECONDS, or release the sessions.`,
        );
      await systemClock.sleep(POLL_INTERVAL_MS);
    }
  });
}

export function undrainHost(terminal: Terminal, id: string, { json }: JsonOption): Promise<void> {
  return withLocal(terminal, async local => {
    await local.drainHost(id, false);
    if (json) return printJson(terminal, { id, draining: false });
    terminal.print(`Host ${id} receives new sessions again.\n`);
  });
}

export function removeHost(terminal: Terminal, id: string, { json }: JsonOption): Promise<void> {
  return withLocal(terminal, async local => {
    await local.removeHost(id);
    if (json) return printJson(terminal, { id, removed: true });
    terminal.print(`Host ${id} was removed from the list.\n`);
  });
}

const countUsedSlots = async (local: Local, id: string): Promise<number> =>
  (await local.listHosts()).find(host => host.id === id)?.used ?? 0;
