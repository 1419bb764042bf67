// Compares cold starts of sessions that have a context with cold starts of sessions that have none. The two kinds of
// start alternate. Measures the time from the create request to the first response from the browser. There are no warm
// browsers, so all starts are cold. The lower bound is the same Chromium started by hand, with a profile of the same
// contents and with an empty profile.
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { Context } from '../contract/contexts.ts';
import { STORED_ENTRIES } from '../server/engines/profiles/checked-tar.ts';
import { PlainChromium } from '../tests/harness/by-hand.ts';
import { claimFreePort } from '../tests/harness/free-port.ts';
import { liftLimits } from '../tests/harness/limits.ts';
import { TestServer } from '../tests/harness/server.ts';
import { eventually } from '../tests/harness/until.ts';
import { CdpConnection } from './cdp-connection.ts';
import { openSite } from './log-site.ts';
import { type Comparison, comparisonOf } from './statistics.ts';

const RECORDS = 370;
const RECORD_BYTES = 16 * 1024;
const SAVE_TIMEOUT_MS = 60_000;

export interface ContextFigures {
  readonly megabytes: number;
  /** Milliseconds to the first response over CDP. */
  readonly start: Comparison;
  readonly byHand: Comparison;
}

export async function measureContexts(rounds: number): Promise<ContextFigures> {
  const env = { BERTH_WARM: '0', BERTH_EGRESS_ALLOW: '127.0.0.1/32' };
  const server = new TestServer({ env, isMeasured: true }, await claimFreePort());
  const site = await openSite();
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-profile-'));
  try {
    await server.start();
    await liftLimits(server);
    const { id, sizeBytes } = await createFilledContext(server, `${site.url}/idle`);
    const profile = await fillProfileByHand(folder, `${site.url}/idle`);
    const start = await alternateSides(
      rounds,
      () => measureSessionStart(server, {}),
      () => measureSessionStart(server, { browserSettings: { context: { id } } }),
    );
    const byHand = await alternateSides(
      rounds,
      () => measureByHandStart(),
      () => measureByHandStart(profile),
    );
    return { megabytes: sizeBytes / 1e6, start, byHand };
  } finally {
    await site.close();
    await server.close();
    rmSync(folder, { recursive: true });
  }
}

async function alternateSides(
  rounds: number,
  base: () => Promise<number>,
  ours: () => Promise<number>,
): Promise<Comparison> {
  const [baseMs, contextMs]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    baseMs.push(await base());
    contextMs.push(await ours());
  }
  return comparisonOf(baseMs, contextMs);
}

export async function measureSessionStart(server: TestServer, body: object): Promise<number> {
  const startMs = performance.now();
  const session = await server.createSession({ keepAlive: true, ...body });
  await awaitFirstResponse(session.connectUrl);
  const durationMs = performance.now() - startMs;
  await server.release(session.id);
  return durationMs;
}

async function measureByHandStart(profile?: string): Promise<number> {
  let spawnMs = 0;
  const onSpawned = (): void => {
    spawnMs = performance.now();
  };
  const browser = await PlainChromium.start(profile === undefined ? { onSpawned } : { profile, onSpawned });
  await awaitFirstResponse(browser.url);
  const durationMs = performance.now() - spawnMs;
  await browser.close();
  return durationMs;
}

async function awaitFirstResponse(url: string): Promise<void> {
  const connection = await CdpConnection.open(url);
  await connection.send('Browser.getVersion');
  connection.close();
}

/** Creates a context with as much random data in the IndexedDB of one site as a webmail app stores. */
export async function createFilledContext(
  server: TestServer,
  site: string,
  records = RECORDS,
): Promise<{ id: string; sizeBytes: number }> {
  const { body: context } = await server.api<Context>('POST', '/v1/browsers/contexts', { body: {} });
  const browserSettings = { context: { id: context.id, persist: true } };
  const session = await server.createSession({ keepAlive: true, browserSettings });
  await storeRecords(session.connectUrl, site, records);
  await server.release(session.id);
  const readContext = async () => (await server.api<Context>('GET', `/v1/browsers/contexts/${context.id}`)).body;
  const { sizeBytes } = await eventually(
    'the context to be saved',
    readContext,
    ({ version }) => version === 1,
    SAVE_TIMEOUT_MS,
  );
  return { id: context.id, sizeBytes };
}

/** Fills the profile of a browser that is started by hand, and copies the parts that a context would store. */
async function fillProfileByHand(folder: string, site: string): Promise<string> {
  const browser = await PlainChromium.start();
  await storeRecords(browser.url, site);
  const profile = join(folder, 'profile');
  await browser.close(browserProfile => {
    for (const name of STORED_ENTRIES)
      if (existsSync(join(browserProfile, 'Default', name)))
        cpSync(join(browserProfile, 'Default', name), join(profile, 'Default', name), { recursive: true });
  });
  return profile;
}

async function storeRecords(url: string, site: string, records = RECORDS): Promise<void> {
  const connection = await CdpConnection.open(url);
  const page = await connection.attachToPage();
  await connection.visit(site, page);
  const { exceptionDetails } = await connection.send(
    'Runtime.evaluate',
    { expression: storeScript(records), awaitPromise: true },
    page,
  );
  if (exceptionDetails) throw new Error(`the page could not store its records: ${JSON.stringify(exceptionDetails)}`);
  connection.close();
}

const storeScript = (records: number): string => `new Promise((resolve, reject) => {
  const open = indexedDB.open('bench', 1);
  open.onupgradeneeded = () => open.result.createObjectStore('records');
  open.onerror = () => reject(open.error);
  open.onsuccess = () => {
    const work = open.result.transaction('records', 'readwrite');
    for (let at = 0; at < ${records}; at++)
      work.objectStore('records').put(crypto.getRandomValues(new Uint8Array(${RECORD_BYTES})), at);
    work.oncomplete = () => resolve();
    work.onerror = () => reject(work.error);
  };
})`;
