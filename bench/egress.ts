// What a page fetches through the egress proxy of a session, beside what one fetches without: large, and a first byte. The
// same page code in both browsers, in turns; the site is a process of its own, so that nobody's work is in its way.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { TestServer } from '../tests/harness/server.ts';
import { ByHand } from './by-hand.ts';
import { CdpConnection } from './cdp-connection.ts';
import { type Comparison, comparison } from './statistics.ts';

const MIB = 1024 ** 2;
const LARGE_MIB = 100;
const SMALL_TIMES = 20;

export interface EgressFigures {
  /** MiB a second. */
  readonly throughput: Comparison;
  /** Milliseconds until the answer of a request on a connection of its own. */
  readonly firstByte: Comparison;
}

export async function measureEgress(server: TestServer, rounds: number): Promise<EgressFigures> {
  const site = await startSite();
  const session = await server.createSession({ keepAlive: true });
  const hand = await ByHand.start();
  const ours = await CdpConnection.open(session.connectUrl);
  const theirs = await CdpConnection.open(hand.url);
  try {
    const pages = { ours: await onSite(ours, site.url), theirs: await onSite(theirs, site.url) };
    const seen = {
      large: [] as number[],
      largeByHand: [] as number[],
      small: [] as number[],
      smallByHand: [] as number[],
    };
    for (let round = 0; round < rounds; round++) {
      seen.largeByHand.push((LARGE_MIB * 1000) / (await ask(theirs, pages.theirs, LARGE)));
      seen.large.push((LARGE_MIB * 1000) / (await ask(ours, pages.ours, LARGE)));
      seen.smallByHand.push(await ask(theirs, pages.theirs, SMALL));
      seen.small.push(await ask(ours, pages.ours, SMALL));
    }
    return {
      throughput: comparison(seen.largeByHand, seen.large),
      firstByte: comparison(seen.smallByHand, seen.small),
    };
  } finally {
    ours.close();
    theirs.close();
    await hand.close();
    await server.release(session.id);
    site.close();
  }
}

const LARGE = `(async () => {
  const began = performance.now();
  const reader = (await fetch('/large', { cache: 'no-store' })).body.getReader();
  while (!(await reader.read()).done);
  return performance.now() - began;
})()`;

/** The middle of some: one alone is at the mercy of the moment. */
const SMALL = `(async () => {
  const times = [];
  for (let time = 0; time < ${SMALL_TIMES}; time++) {
    const began = performance.now();
    await (await fetch('/small', { cache: 'no-store' })).text();
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b)[${SMALL_TIMES / 2}];
})()`;

async function onSite(connection: CdpConnection, url: string): Promise<string> {
  const page = await connection.attachToPage();
  await connection.visit(`${url}/`, page);
  return page;
}

async function ask(connection: CdpConnection, page: string, expression: string): Promise<number> {
  const evaluated = await connection.send(
    'Runtime.evaluate',
    { expression, awaitPromise: true, returnByValue: true },
    page,
  );
  const { value } = Object(evaluated.result);
  if (typeof value !== 'number') throw new Error(`the page could not fetch: ${JSON.stringify(evaluated)}`);
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
