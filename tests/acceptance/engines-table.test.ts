// The tables of docs/engines.md must equal the observations of the probes on both engines. `npm run gen:engines` writes
// the tables.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import { ENGINES, type Engine } from '../../contract/sessions.ts';
import { CdpClient } from '../harness/cdp.ts';
import { PROBES } from '../harness/engine-probes.ts';
import { type FeatureResults, readTables, renderTables, writeTables } from '../harness/engine-table.ts';
import { LOGIN_PAGES } from '../harness/logged-in.ts';
import { createLookPages, type Observations } from '../harness/look.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';

const ID = '0199f7c2-6a64-7a0e-9a53-0f1c3a2f7d10';
/**
 * Maps the label of a feature to a create body that uses it. An engine without the feature refuses the body with 422.
 * With Chromium the create fails too, but with another status, because no uploaded file has the id `ID`.
 */
const FEATURE_BODIES: Readonly<Record<string, (engine: Engine) => object>> = {
  'extensions (`extensionIds`)': engine => ({ browserSettings: { engine, extensionIds: [ID] } }),
  'PDF files in the tab (`enablePdfViewer`)': engine => ({
    browserSettings: { engine, enablePdfViewer: true, extensionIds: [ID] },
  }),
  'further certificate authorities (`caCertificates`)': engine => ({
    browserSettings: { engine },
    proxySettings: { caCertificates: [ID] },
  }),
};

const lookPages = createLookPages();
const pages = await openPages({ ...LOGIN_PAGES, ...lookPages.pages });
const server = await startServer({ pages, env: { BERTH_ENGINE: undefined } });

test('the tables in docs/engines.md match the behavior of the engines', { timeout: 300_000 }, async () => {
  const tables = renderTables(await probeFeatures(), {
    chromium: await look('chromium'),
    'headless-shell': await look('headless-shell'),
  });
  if (process.env.BERTH_WRITE_ENGINES) writeTables(tables);
  assert.equal(readTables(), tables, 'run `npm run gen:engines` and commit what it wrote');
});

async function probeFeatures(): Promise<FeatureResults> {
  const resultsByFeature = new Map<string, Record<Engine, string>>();
  const note = (what: string, engine: Engine, seen: string): void => {
    resultsByFeature.set(what, { chromium: '', 'headless-shell': '', ...resultsByFeature.get(what), [engine]: seen });
  };
  for (const engine of ENGINES) {
    await probeEngine(engine, note);
    for (const [what, body] of Object.entries(FEATURE_BODIES)) {
      const { status } = await server.api('POST', '/v1/browsers/sessions', { body: body(engine) });
      note(what, engine, status === 422 ? 'refused at the create' : 'yes');
    }
  }
  return resultsByFeature;
}

async function probeEngine(engine: Engine, note: (what: string, engine: Engine, seen: string) => void): Promise<void> {
  const session = await server.createSession({ browserSettings: { engine } });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  assert.ok(page);
  for (const [what, probe] of Object.entries(PROBES)) {
    const seen = withTimeLimit(what, probe({ page, pages, server, session }));
    note(what, engine, await seen.catch(error => `no: ${String(error).split('\n')[0]}`));
  }
  await server.release(session.id);
  await browser.close();
}

async function look(engine: Engine): Promise<Observations> {
  const session = await server.createSession({ keepAlive: true, browserSettings: { engine } });
  const client = await CdpClient.connect(session.connectUrl);
  await client.send('Target.createTarget', { url: `${pages.url}/look?${engine}` });
  const seen = await eventually('the page to report its observations', () => lookPages.observationsOf(engine));
  await client.close();
  await server.release(session.id);
  assert.ok(seen);
  return seen;
}
