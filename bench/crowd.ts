// Opens many sessions at once, each with a page. Measures whether all of them respond, and the cost of one session.
import { systemClock } from '../server/kit/clock.ts';
import type { CreatedSession, TestServer } from '../tests/harness/server.ts';
import { CdpConnection } from './cdp-connection.ts';
import { memoryOfBoxes } from './memory.ts';

const LANES = 4;
const PAGE = 'data:text/html,<title>crowd</title><h1>A page</h1>';

export interface CrowdFigure {
  readonly sessions: number;
  /** How long it took to open all sessions and their pages. */
  readonly seconds: number;
  readonly pssMibEach: number;
  readonly privateMibEach: number;
}

export async function measureCrowd(server: TestServer, sessions: number, settleMs: number): Promise<CrowdFigure> {
  const openedSessions: Array<{
    readonly session: CreatedSession;
    readonly connection: CdpConnection;
    readonly page: string;
  }> = [];
  const startMs = systemClock.monotonicMs();
  try {
    const runLane = async (): Promise<void> => {
      for (let remainingSessions = sessions; remainingSessions > 0; remainingSessions -= LANES) {
        const session = await server.createSession({ keepAlive: true });
        const connection = await CdpConnection.open(session.connectUrl);
        const page = await connection.attachToPage();
        openedSessions.push({ session, connection, page });
        await connection.visit(PAGE, page);
      }
    };
    await Promise.all(Array.from({ length: LANES }, runLane));
    const seconds = (systemClock.monotonicMs() - startMs) / 1000;
    await systemClock.sleep(settleMs);
    for (const { connection, page } of openedSessions)
      if ((await connection.evaluate('document.title', page)) !== 'crowd')
        throw new Error('the page of a session does not have the title "crowd"');
    const { pssMib, privateMib } = memoryOfBoxes(server, new Set(openedSessions.map(({ session }) => session.id)));
    return {
      sessions: openedSessions.length,
      seconds,
      pssMibEach: pssMib / openedSessions.length,
      privateMibEach: privateMib / openedSessions.length,
    };
  } finally {
    for (const { connection } of openedSessions) connection.close();
    await Promise.all(openedSessions.map(({ session }) => server.release(session.id)));
  }
}
