// Accepts the connections that are waiting, before a server stops listening. The kernel would close them.
import type { Server } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Clock } from './clock.ts';

/** How long waiting connections are still accepted. Clients may connect without a pause. */
const ACCEPT_MAX_MS = 500;
/** The backlog is empty after this many turns of the event loop without a new connection. The first may have begun. */
const IDLE_TURNS = 2;

/**
 * Waits until Node has accepted all connections that the kernel has established, for at most `ACCEPT_MAX_MS`. Node
 * accepts one in each turn of the event loop.
 */
export async function acceptBacklog(server: Server, clock: Clock): Promise<void> {
  const startedMs = clock.monotonicMs();
  let acceptedCount = 0;
  const count = (): void => void acceptedCount++;
  server.on('connection', count);
  for (let idleTurns = 0; idleTurns < IDLE_TURNS && clock.monotonicMs() - startedMs < ACCEPT_MAX_MS; ) {
    const countBefore = acceptedCount;
    await setImmediate();
    idleTurns = acceptedCount === countBefore ? idleTurns + 1 : 0;
  }
  server.off('connection', count);
}
