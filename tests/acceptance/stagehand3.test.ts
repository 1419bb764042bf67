// Stagehand 3 from npm, unmodified, without a model: connected directly to sessions, and in its default configuration
// with the API address.
import '../harness/only-loopback.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Stagehand } from 'stagehand3';
import type { Session } from '../../contract/sessions.ts';
import { attemptedDestinations } from '../harness/only-loopback.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const pages = await openPages();
const server = await startServer({ pages });
process.env.BROWSERBASE_BASE_URL = server.url;

const MODEL_KEY = 'sk-a-key-of-the-callers-model';
const createStagehand = (more: object = {}): Stagehand =>
  new Stagehand({
    env: 'BROWSERBASE',
    apiKey: server.key,
    model: { modelName: 'openai/gpt-4.1-mini', apiKey: MODEL_KEY },
    verbose: 0,
    disablePino: true,
    ...more,
  });

/** Opens a page, reads it, clicks, and takes a screenshot. */
async function drive(stagehand: Stagehand): Promise<void> {
  const [page] = stagehand.context.pages();
  assert.ok(page);
  await page.goto(pages.a);
  assert.equal(await page.title(), 'Home');
  assert.equal(await page.evaluate('1 + 1'), 2);
  assert.deepEqual(await page.evaluate('[innerWidth, innerHeight]'), [1288, 711]);
  await page.locator('#next').click();
  // A click does not wait for the new page, and a command sent before that page is ready gets no response.
  await eventually(
    'the next page',
    () =>
      page
        .locator('h1')
        .textContent()
        .catch(() => ''),
    heading => heading === 'Next',
  );
  const otherPage = await stagehand.context.newPage(`${pages.a}/next`);
  await eventually(
    'the new page',
    () => otherPage.title().catch(() => ''),
    title => title === 'Next',
  );
  assert.ok((await page.screenshot()).length > 1000);
}

const listOpenSessions = async (): Promise<Session[]> =>
  (await server.api<Session[]>('GET', '/v1/browsers/sessions?status=PENDING,RUNNING')).body;

async function driveUntilEnded(stagehand: Stagehand): Promise<void> {
  await stagehand.init();
  const id = stagehand.browserbaseSessionID;
  assert.ok(id);
  const session = await server.read(id);
  assert.equal(session.status, 'RUNNING');
  assert.equal(session.userMetadata?.stagehand, 'true');
  await drive(stagehand);
  await stagehand.close();
  assert.equal((await server.waitUntilEnded(id)).status, 'COMPLETED');
}

test('Stagehand with disableAPI controls pages, and its session ends when Stagehand closes', () =>
  driveUntilEnded(createStagehand({ disableAPI: true })));

test('Stagehand controls pages in its default configuration, and its session ends when Stagehand closes', async () => {
  process.env.STAGEHAND_API_URL = `${server.url}/v1`;
  await driveUntilEnded(createStagehand());
});

test('Stagehand continues an existing session, and leaves the session running', async () => {
  const kept = await server.createSession({ keepAlive: true });
  for (const disableAPI of [true, false]) {
    const stagehand = createStagehand({ disableAPI, keepAlive: true, browserbaseSessionID: kept.id });
    await stagehand.init();
    assert.equal(stagehand.browserbaseSessionID, kept.id);
    const [page] = stagehand.context.pages();
    await page?.goto(pages.a);
    assert.equal(await page?.title(), 'Home');
    await stagehand.close();
    assert.equal((await server.read(kept.id)).status, 'RUNNING');
  }
  await server.release(kept.id);
});

test('Stagehand reports a wrong key as unauthorized', async () => {
  await assert.rejects(createStagehand({ apiKey: 'bak_wrong' }).init(), /unauthorized/i);
});

test('Stagehand sends nothing to other machines, the model key is not logged, and no process, file or unfinished database row is left behind', async () => {
  assert.deepEqual(attemptedDestinations(), []);
  assert.ok(!server.log().some(line => line.includes(MODEL_KEY)));
  assert.deepEqual(await listOpenSessions(), []);
  await server.waitUntilSettled();
});
