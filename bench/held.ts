// Measures how many sessions, each with a page, can be kept open at once before the machine's memory is nearly used up
// or a session does not respond. Also measures the additional memory and processor time of the server.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../server/kit/clock.ts';
import { WaitExpired, withTimeout } from '../server/kit/wait.ts';
import type { CreatedSession, TestServer } from '../tests/harness/server.ts';
import { CdpConnection } from './cdp-connection.ts';
import { type ServerCpuMeter, sumOf } from './cpu-groups.ts';
import { memoryOfBoxes } from './memory.ts';
import { memoryOf, pidsWithPath, processTreesOf } from './processes.ts';

const PAGE = 'data:text/html,<title>held</title><h1>A page</h1>';
const RESPONSE_TIMEOUT_MS = 10_000;
/** The memory that stays free for other processes on the machine. */
const FREE_KIB_MIN = 1024 * 1024;
/** The number of idle sessions during the measurement of the server. */
const IDLE_SESSIONS = 10;
const MINUTE_MS = 60_000;

export interface ServerFigure {
  readonly sessions: number;
  readonly nodeRssMib: number;
  readonly nodePssMib: number;
  readonly postgresPssMib: number;
  /** The CPU time of the server, PostgreSQL and the helper programs that the server starts, without Chromium. */
  readonly cpuSecondsPerMinute: number;
}

export interface HeldFigures {
  readonly server: readonly ServerFigure[];
  readonly sessions: number;
  readonly stopReason: string;
  readonly privateMibEach: number;
  readonly pssMibEach: number;
}

export interface HeldExtent {
  readonly maxSessions: number;
  /** The duration of a measurement of the server. */
  readonly idleMs: number;
  /** How long to wait before the first measurement. After this time, a server without sessions is idle. */
  readonly serverSettleMs: number;
  /** How long to wait until the recording of the first picture of a page has been encoded and stored. */
  readonly pageSettleMs: number;
}

interface HeldSession {
  readonly session: CreatedSession;
  readonly connection: CdpConnection;
  readonly page: string;
}

/** The number of concurrent releases. Further ones would only wait for a database connection. */
const CONCURRENT_RELEASES_MAX = 8;

export async function measureHeldSessions(
  server: TestServer,
  cpuMeter: ServerCpuMeter,
  extent: HeldExtent,
): Promise<HeldFigures> {
  const openSessions: HeldSession[] = [];
  await systemClock.sleep(extent.serverSettleMs);
  const serverFigures = [await measureServer(server, cpuMeter, 0, extent.idleMs)];
  let stopReason = 'the limit of this bench';
  try {
    while (openSessions.length < extent.maxSessions) {
      if (freeKib() < FREE_KIB_MIN) {
        stopReason = 'memory';
        break;
      }
      try {
        openSessions.push(
          await withTimeout(RESPONSE_TIMEOUT_MS * 3, 'a session with a page', () => openSession(server)),
        );
        if (openSessions.length === IDLE_SESSIONS) {
          await systemClock.sleep(extent.pageSettleMs);
          serverFigures.push(await measureServer(server, cpuMeter, openSessions.length, extent.idleMs));
        }
      } catch (error) {
        if (openSessions.length === 0) throw error;
        stopReason = error instanceof Error ? error.message : String(error);
        break;
      }
    }
    const responsiveFlags = await Promise.all(openSessions.map(isResponsive));
    const boxMemory = memoryOfBoxes(server, new Set(openSessions.map(({ session }) => session.id)));
    return {
      server: serverFigures,
      sessions: responsiveFlags.filter(Boolean).length,
      stopReason,
      privateMibEach: boxMemory.privateMib / openSessions.length,
      pssMibEach: boxMemory.pssMib / openSessions.length,
    };
  } finally {
    for (const { connection } of openSessions) connection.close();
    while (openSessions.length > 0)
      await Promise.all(
        openSessions.splice(0, CONCURRENT_RELEASES_MAX).map(({ session }) => server.release(session.id)),
      );
  }
}

async function openSession(server: TestServer): Promise<HeldSession> {
  const session = await server.createSession({ keepAlive: true });
  const connection = await CdpConnection.open(session.connectUrl);
  const page = await connection.attachToPage();
  await connection.visit(PAGE, page);
  return { session, connection, page };
}

async function isResponsive({ connection, page }: HeldSession): Promise<boolean> {
  try {
    return (
      (await withTimeout(RESPONSE_TIMEOUT_MS, 'an answer', () => connection.evaluate('document.title', page))) ===
      'held'
    );
  } catch (error) {
    if (error instanceof WaitExpired) return false;
    throw error;
  }
}

async function measureServer(
  server: TestServer,
  cpuMeter: ServerCpuMeter,
  sessions: number,
  idleMs: number,
): Promise<ServerFigure> {
  const serverCpuSeconds = (): number => sumOf({ ...cpuMeter.read(), chromium: 0 });
  const [cpuSecondsBefore, startMs] = [serverCpuSeconds(), systemClock.monotonicMs()];
  await systemClock.sleep(idleMs);
  const minutes = (systemClock.monotonicMs() - startMs) / MINUTE_MS;
  return {
    sessions,
    nodeRssMib: residentMib(server.pid),
    nodePssMib: memoryOf([server.pid]).pssMib,
    postgresPssMib: memoryOf(processTreesOf(pidsWithPath(join(server.dataDir, 'pg')))).pssMib,
    cpuSecondsPerMinute: (serverCpuSeconds() - cpuSecondsBefore) / minutes,
  };
}

const freeKib = (): number => kibIn('/proc/meminfo', 'MemAvailable');
const residentMib = (pid: number): number => kibIn(`/proc/${pid}/status`, 'VmRSS') / 1024;

const kibIn = (file: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(file, 'utf8'))?.[1]);
