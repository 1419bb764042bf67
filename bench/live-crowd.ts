// Measures what different numbers of viewers of one session cost, compared with a minimal relay that has the same
// number of viewers.
import { WebSocket } from 'ws';
import type { DebugUrls } from '../contract/live.ts';
import { systemClock } from '../server/kit/clock.ts';
import { PlainChromium } from '../tests/harness/by-hand.ts';
import { LiveViewer } from '../tests/harness/live-viewer.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { CdpConnection } from './cdp-connection.ts';
import { openWindow, startRelay } from './live-sides.ts';
import { MOVING_PAGES } from './moving-pages.ts';
import { cpuSecondsOf, pidsOutsideBoxes } from './processes.ts';

const SETTLE_MS = 3_000;
const VIEWER_COUNTS = [0, 1, 10, 50] as const;
const RELAY_VIEWERS = 50;

export interface CrowdCost {
  readonly page: string;
  readonly way: string;
  readonly viewers: number;
  /** CPU seconds per second, without the browser. */
  readonly cpu: number;
  /** Frames per second, for the median viewer. */
  readonly framesPerSecond: number;
}

interface Crowd {
  frameCounts(): readonly number[];
  leave(): Promise<void>;
}

export async function measureLiveCrowd(server: TestServer, seconds: number): Promise<readonly CrowdCost[]> {
  const costs: CrowdCost[] = [];
  for (const page of ['agent', 'moving'] as const) {
    const address = MOVING_PAGES[page];
    costs.push(await measureRelay(page, address, seconds), ...(await measureLiveView(server, page, address, seconds)));
  }
  return costs;
}

async function measureRelay(page: string, address: string, seconds: number): Promise<CrowdCost> {
  process.stderr.write(`bench: ${RELAY_VIEWERS} at the relay, ${page}\n`);
  const browser = await PlainChromium.start();
  const source = await openWindow(browser);
  await source.connection.visit(address, source.page);
  const relay = await startRelay(browser.url, source.targetId);
  const crowd = await openRelayViewers(relay.url, RELAY_VIEWERS);
  try {
    return { page, way: 'relay by hand', ...(await measureCost(crowd, RELAY_VIEWERS, () => [relay.pid], seconds)) };
  } finally {
    await crowd.leave();
    relay.end();
    source.connection.close();
    await browser.close();
  }
}

async function measureLiveView(
  server: TestServer,
  page: string,
  address: string,
  seconds: number,
): Promise<CrowdCost[]> {
  const session = await server.createSession({ keepAlive: true });
  const connection = await CdpConnection.open(session.connectUrl);
  await connection.visit(address, await connection.attachToPage());
  const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${session.id}/debug`);
  const costs: CrowdCost[] = [];
  for (const viewers of VIEWER_COUNTS) {
    process.stderr.write(`bench: ${viewers} at the live view, ${page}\n`);
    const crowd = await openLiveViewers(body.debuggerUrl, viewers);
    costs.push({ page, way: 'Berth', ...(await measureCost(crowd, viewers, () => pidsOutsideBoxes(server), seconds)) });
    await crowd.leave();
  }
  connection.close();
  await server.release(session.id);
  return costs;
}

async function measureCost(crowd: Crowd, viewers: number, pids: () => readonly number[], seconds: number) {
  await systemClock.sleep(SETTLE_MS);
  const readingsBefore = { cpu: cpuSecondsOf(pids()), frameCounts: crowd.frameCounts(), ms: systemClock.monotonicMs() };
  await systemClock.sleep(seconds * 1000);
  const elapsedSeconds = (systemClock.monotonicMs() - readingsBefore.ms) / 1000;
  const rates = crowd
    .frameCounts()
    .map((count, index) => (count - (readingsBefore.frameCounts[index] ?? 0)) / elapsedSeconds);
  const medianRate = rates.toSorted((one, other) => one - other)[rates.length >> 1] ?? 0;
  return { viewers, cpu: (cpuSecondsOf(pids()) - readingsBefore.cpu) / elapsedSeconds, framesPerSecond: medianRate };
}

async function openLiveViewers(url: string, count: number): Promise<Crowd> {
  const viewers = await Promise.all(Array.from({ length: count }, () => LiveViewer.open(url)));
  return {
    frameCounts: () => viewers.map(({ frameCount }) => frameCount),
    leave: async () => {
      await Promise.all(viewers.map(viewer => viewer.close()));
    },
  };
}

async function openRelayViewers(url: string, count: number): Promise<Crowd> {
  const counts = Array.from({ length: count }, () => 0);
  const sockets = counts.map((_, index) => {
    const socket = new WebSocket(url.replace('http', 'ws'), { perMessageDeflate: false });
    socket.on('message', () => {
      counts[index] = (counts[index] ?? 0) + 1;
    });
    return socket;
  });
  return {
    frameCounts: () => [...counts],
    leave: async () => {
      for (const socket of sockets) socket.terminate();
    },
  };
}
