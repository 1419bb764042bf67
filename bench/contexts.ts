// A cold start that unpacks a context beside one that has none, in turns: from the request of a create to the first answer of
// its browser. A user agent that nobody has asked for makes the other one cold as well.
import { performance } from 'node:perf_hooks';
import type { Context } from '../contract/contexts.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { eventually } from '../tests/harness/until.ts';
import { CdpConnection } from './cdp-connection.ts';
import { openSite } from './log-site.ts';
import { type Comparison, comparison } from './statistics.ts';

const RECORDS = 370;
const RECORD_BYTES = 16 * 1024;
const SAVED_MS = 60_000;

export interface ContextFigures {
  readonly megabytes: number;
  /** Milliseconds to the first answer over CDP. */
  readonly start: Comparison;
}

export async function measureContexts(server: TestServer, rounds: number): Promise<ContextFigures> {
  const site = await openSite();
  const { id, sizeBytes } = await fill(server, `${site.url}/idle`).finally(() => site.close());
  const [without, with_]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    without.push(await start(server, { browserSettings: { userAgent: `bench ${round}` } }));
    with_.push(await start(server, { browserSettings: { context: { id } } }));
  }
  return { megabytes: sizeBytes / 1e6, start: comparison(without, with_) };
}

async function start(server: TestServer, body: object): Promise<number> {
  const began = performance.now();
  const session = await server.createSession({ keepAlive: true, ...body });
  const connection = await CdpConnection.open(session.connectUrl);
  await connection.send('Browser.getVersion');
  const tookMs = performance.now() - began;
  connection.close();
  await server.release(session.id);
  return tookMs;
}

/** A context with as much random data in one site's IndexedDB as a mail program keeps. */
async function fill(server: TestServer, site: string): Promise<{ id: string; sizeBytes: number }> {
  const { body: context } = await server.api<Context>('POST', '/v1/browsers/contexts', { body: {} });
  const browserSettings = { context: { id: context.id, persist: true } };
  const session = await server.createSession({ keepAlive: true, browserSettings });
  const connection = await CdpConnection.open(session.connectUrl);
  const page = await connection.attachToPage();
  await connection.visit(site, page);
  const { exceptionDetails } = await connection.send(
    'Runtime.evaluate',
    { expression: KEEP, awaitPromise: true },
    page,
  );
  if (exceptionDetails) throw new Error(`the page could not keep its data: ${JSON.stringify(exceptionDetails)}`);
  connection.close();
  await server.release(session.id);
  const look = async () => (await server.api<Context>('GET', `/v1/browsers/contexts/${context.id}`)).body;
  const { sizeBytes } = await eventually('the context to be saved', look, ({ version }) => version === 1, SAVED_MS);
  return { id: context.id, sizeBytes };
}

const KEEP = `new Promise((resolve, reject) => {
  const open = indexedDB.open('bench', 1);
  open.onupgradeneeded = () => open.result.createObjectStore('records');
  open.onerror = () => reject(open.error);
  open.onsuccess = () => {
    const work = open.result.transaction('records', 'readwrite');
    for (let at = 0; at < ${RECORDS}; at++)
      work.objectStore('records').put(crypto.getRandomValues(new Uint8Array(${RECORD_BYTES})), at);
    work.oncomplete = () => resolve();
    work.onerror = () => reject(work.error);
  };
})`;
