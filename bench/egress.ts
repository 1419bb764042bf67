// Throughput and latency of fetches through the egress proxy of a session, compared with fetches without it. The same
// page code runs in all browsers in turn, and the site is a separate process. The cost of the proxy is measured in a
// session without recording and log; a session with the default settings shows the additional cost of both.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { PlainChromium } from '../tests/harness/by-hand.ts';
import type { CreatedSession, TestServer } from '../tests/harness/server.ts';
import { CdpConnection } from './cdp-connection.ts';
import { type Comparison, comparisonOf, type Summary, summaryOf } from './statistics.ts';

const MIB = 1024 ** 2;
const LARGE_MIB = 100;
const SMALL_REQUESTS = 20;
/** The number of warm-up rounds, which are not counted. They fill caches and open connections. */
const WARM_UP_ROUNDS = 2;

export interface EgressFigure {
  readonly name: string;
  /** MiB per second. */
  readonly throughput: Comparison;
  /** Milliseconds until the response to a request that needs a new connection. */
  readonly firstByte: Comparison;
  readonly addedMs: Summary;
}

interface Side {
  readonly connection: CdpConnection;
  readonly page: string;
  readonly throughputs: number[];
  readonly firstByteTimes: number[];
}

export async function measureEgress(server: TestServer, rounds: number): Promise<readonly EgressFigure[]> {
  const site = await startSite();
  const bareSession = await server.createSession({
    keepAlive: true,
    browserSettings: { recordSession: false, logSession: false },
  });
  const defaultSession = await server.createSession({ keepAlive: true });
  const plainBrowser = await PlainChromium.start();
  const sides: Side[] = [];
  try {
    const urls = [plainBrowser.url, bareSession.connectUrl, defaultSession.connectUrl];
    for (const url of urls) sides.push(await openSide(url, site.url));
    for (let round = -WARM_UP_ROUNDS; round < rounds; round++)
      // Every other round runs in reverse order, so that a trend in the load of the machine does not favor one side.
      for (const side of round % 2 === 0 ? sides : sides.toReversed()) await measureRound(side, round >= 0);
    const [base, ...ours] = sides;
    if (!base) throw new Error('no browser was opened for the measurement');
    return ours.map((side, index) => figureOf(index === 0 ? BARE_LABEL : DEFAULT_LABEL, base, side));
  } finally {
    for (const side of sides) side.connection.close();
    await plainBrowser.close();
    await release(server, [bareSession, defaultSession]);
    site.close();
  }
}

const BARE_LABEL = 'without recording and log';
const DEFAULT_LABEL = 'with default settings';

async function release(server: TestServer, sessions: readonly CreatedSession[]): Promise<void> {
  for (const { id } of sessions) await server.release(id);
}

const figureOf = (name: string, base: Side, ours: Side): EgressFigure => ({
  name,
  throughput: comparisonOf(base.throughputs, ours.throughputs),
  firstByte: comparisonOf(base.firstByteTimes, ours.firstByteTimes),
  addedMs: summaryOf(base.firstByteTimes.map((ms, index) => (ours.firstByteTimes[index] ?? Number.NaN) - ms)),
});

async function measureRound(side: Side, isCounted: boolean): Promise<void> {
  const largeMs = await evaluateMs(side, FETCH_LARGE);
  const smallMs = await evaluateMs(side, FETCH_SMALL);
  if (!isCounted) return;
  side.throughputs.push((LARGE_MIB * 1000) / largeMs);
  side.firstByteTimes.push(smallMs);
}

const FETCH_LARGE = `(async () => {
  const began = performance.now();
  const reader = (await fetch('/large', { cache: 'no-store' })).body.getReader();
  while (!(await reader.read()).done);
  return performance.now() - began;
})()`;

/** Returns the median time of several small requests, because a single time varies too much. */
const FETCH_SMALL = `(async () => {
  const times = [];
  for (let time = 0; time < ${SMALL_REQUESTS}; time++) {
    const began = performance.now();
    await (await fetch('/small', { cache: 'no-store' })).text();
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b)[${SMALL_REQUESTS / 2}];
})()`;

async function openSide(url: string, site: string): Promise<Side> {
  const connection = await CdpConnection.open(url);
  const page = await connection.attachToPage();
  await connection.visit(`${site}/`, page);
  return { connection, page, throughputs: [], firstByteTimes: [] };
}

async function evaluateMs({ connection, page }: Side, expression: string): Promise<number> {
  const response = await connection.send(
    'Runtime.evaluate',
    { expression, awaitPromise: true, returnByValue: true },
    page,
  );
  const { value } = Object(response.result);
  if (typeof value !== 'number') throw new Error(`the page could not fetch: ${JSON.stringify(response)}`);
  return value;
}

async function startSite(): Promise<{ url: string; close(): void }> {
  const child = fork(import.meta.filename, { execArgv: [] });
  const [port] = await once(child, 'message');
  return { url: `http://127.0.0.1:${port}`, close: () => void child.kill() };
}

function serveSite(): void {
  const chunk = Buffer.alloc(MIB, 'berth');
  const site = createServer(async ({ url }, response) => {
    if (url === '/large') {
      response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': LARGE_MIB * MIB });
      for (let sent = 0; sent < LARGE_MIB && !response.destroyed; sent++)
        if (!response.write(chunk)) await once(response, 'drain').catch(() => {});
      response.end();
    } else response.writeHead(200, { 'content-type': 'text/html', connection: 'close' }).end('<!doctype html>');
  });
  site.listen(0, '127.0.0.1', () => process.send?.(Object(site.address()).port));
}

if (import.meta.main) serveSite();
