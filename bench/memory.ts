// What an idle session and the idle control plane hold in memory. A session and a browser by hand are looked at in the
// same moment, because what they share is divided among them.
import { systemClock } from '../server/kit/clock.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { processesOf } from '../tests/harness/session-processes.ts';
import { ByHand } from './by-hand.ts';
import { descendants, type Memory, memoryOf, processesNaming } from './processes.ts';

export interface MemoryFigures {
  /** Our process and PostgreSQL, without any session. */
  readonly controlPlane: Memory;
  readonly session: Memory;
  readonly byHand: Memory;
  readonly settleMs: number;
}

export async function measureMemory(server: TestServer, settleMs: number): Promise<MemoryFigures> {
  await systemClock.sleep(settleMs);
  const ours = controlPlaneOf(server);
  const controlPlane = memoryOf(ours);
  const [session, browser] = await Promise.all([server.createSession(), ByHand.start()]);
  try {
    await systemClock.sleep(settleMs);
    return {
      controlPlane,
      session: memoryOf(boxOf(server, session.id, new Set(ours))),
      byHand: memoryOf(descendants([browser.pid])),
      settleMs,
    };
  } finally {
    await server.release(session.id);
    await browser.close();
  }
}

const controlPlaneOf = (server: TestServer): readonly number[] =>
  descendants([server.pid, ...processesNaming(server.dataDir)]);

/** Everything that the session brought: its chain of programs, its browser, its listener. */
function boxOf(server: TestServer, sessionId: string, before: ReadonlySet<number>): readonly number[] {
  const inBox = processesOf(sessionId).map(({ pid }) => pid);
  return descendants([...new Set([...inBox, ...boxRoots(server, before)])]);
}

/** PostgreSQL starts workers as it likes; what descends from it is no part of a session. */
function boxRoots(server: TestServer, before: ReadonlySet<number>): readonly number[] {
  const database = new Set(descendants(processesNaming(`${server.dataDir}/`).filter(pid => before.has(pid))));
  return descendants([server.pid]).filter(pid => !before.has(pid) && !database.has(pid));
}
