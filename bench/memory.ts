// Memory of an idle session and of the idle control plane. A session and a browser started by hand are measured at the
// same moment, because memory that they share is divided between them.
import { systemClock } from '../server/kit/clock.ts';
import { boxesOf } from '../tests/harness/boxes.ts';
import { PlainChromium } from '../tests/harness/by-hand.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { type Memory, memoryOf, pidsWithPath, processTreesOf } from './processes.ts';

export interface MemoryFigures {
  /** The server, PostgreSQL and the warm browsers, without any session. */
  readonly controlPlane: Memory;
  readonly session: Memory;
  readonly byHand: Memory;
  readonly settleMs: number;
}

export async function measureMemory(server: TestServer, settleMs: number): Promise<MemoryFigures> {
  await systemClock.sleep(settleMs);
  const controlPlanePids = controlPlanePidsOf(server);
  const controlPlane = memoryOf(controlPlanePids);
  const [session, browser] = await Promise.all([server.createSession(), PlainChromium.start()]);
  try {
    await systemClock.sleep(settleMs);
    return {
      controlPlane,
      session: memoryOfBoxes(server, new Set([session.id])),
      byHand: memoryOf(processTreesOf([browser.pid])),
      settleMs,
    };
  } finally {
    await server.release(session.id);
    await browser.close();
  }
}

/** The total memory of the boxes of these sessions. */
export function memoryOfBoxes(server: TestServer, sessionIds: ReadonlySet<string>): Memory {
  const sessionOfBox = server.sessionOfBox;
  const boxes = boxesOf(server.dataDir).filter(({ id }) => sessionIds.has(sessionOfBox.get(id) ?? ''));
  return memoryOf(processTreesOf(boxes.flatMap(({ pids }) => pids)));
}

const controlPlanePidsOf = (server: TestServer): readonly number[] =>
  processTreesOf([server.pid, ...pidsWithPath(server.dataDir)]);
