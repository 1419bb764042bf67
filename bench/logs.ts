// Measures the cost of the session log: the speed of CDP through the gateway, and the CPU time while pages log messages
// and send many requests. Sessions with and without the log alternate on one server. No session is recorded.
import { systemClock } from '../server/kit/clock.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { processesOf } from '../tests/harness/session-processes.ts';
import { MEASURES, measureInTurns, prepareSide, type Side } from './gateway.ts';
import { openSite, type Site } from './log-site.ts';
import { cpuSecondsOf } from './processes.ts';
import { type Comparison, comparisonOf, type Summary, summaryOf } from './statistics.ts';

export interface LogFigures {
  readonly gateway: ReadonlyArray<{
    readonly name: string;
    readonly unit: 'ms' | 'per s';
    readonly comparison: Comparison;
  }>;
  readonly work: readonly WorkFigure[];
}

/** CPU seconds per minute, with the session log off and on. */
export interface WorkFigure {
  readonly page: string;
  readonly chromium: { readonly off: Summary; readonly on: Summary };
  readonly server: { readonly off: Summary; readonly on: Summary };
}

interface SessionSide extends Side {
  readonly id: string;
}

export async function measureLogs(
  server: TestServer,
  rounds: number,
  turns: number,
  turnMs: number,
): Promise<LogFigures> {
  const site = await openSite();
  const sides = [await openSide(server, false), await openSide(server, true)];
  const gateway: LogFigures['gateway'][number][] = [];
  for (const measure of MEASURES) {
    const [off = [], on = []] = await measureInTurns(measure, sides, rounds);
    gateway.push({ name: measure.name, unit: measure.unit, comparison: comparisonOf(off, on) });
  }
  const work: WorkFigure[] = [];
  for (const page of site.pages) work.push(await measureWork(server, sides, site, page, turns, turnMs));
  for (const { connection, id } of sides) {
    connection.close();
    await server.release(id);
  }
  await site.close();
  return { gateway, work };
}

/**
 * Opens a session with an unusual locale, so that it starts cold and its processes can be found by the id of the
 * session.
 */
async function openSide(server: TestServer, logSession: boolean): Promise<SessionSide> {
  const browserSettings = { logSession, recordSession: false, locale: logSession ? 'de-AT' : 'de-CH' };
  const { id, connectUrl } = await server.createSession({ keepAlive: true, browserSettings });
  return { id, ...(await prepareSide(connectUrl)) };
}

async function measureWork(
  server: TestServer,
  sides: readonly SessionSide[],
  site: Site,
  page: string,
  turns: number,
  turnMs: number,
): Promise<WorkFigure> {
  const cpuPerMinute = sides.map(() => ({ chromium: [] as number[], server: [] as number[] }));
  for (let turn = 0; turn < turns; turn++)
    for (const [index, side] of sides.entries()) {
      await side.connection.visit(site.url + page, side.page);
      const pids = processesOf(side.id).map(({ pid }) => pid);
      const cpuSecondsBefore = [cpuSecondsOf(pids), cpuSecondsOf([server.pid])] as const;
      const startMs = systemClock.monotonicMs();
      await systemClock.sleep(turnMs);
      const minutes = (systemClock.monotonicMs() - startMs) / 60_000;
      cpuPerMinute[index]?.chromium.push((cpuSecondsOf(pids) - cpuSecondsBefore[0]) / minutes);
      cpuPerMinute[index]?.server.push((cpuSecondsOf([server.pid]) - cpuSecondsBefore[1]) / minutes);
      await side.connection.visit('about:blank', side.page);
    }
  const [off, on] = cpuPerMinute;
  const summariesOf = (kind: 'chromium' | 'server') => ({
    off: summaryOf(off?.[kind] ?? []),
    on: summaryOf(on?.[kind] ?? []),
  });
  return { page, chromium: summariesOf('chromium'), server: summariesOf('server') };
}
