// The last page that a session showed, in the list of sessions and in its search, and the filter by duration. Titles
// and addresses come from pages, so some of the tested values are hostile.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import type { Session } from '../../contract/sessions.ts';
import { boxProcessesOf, kill } from '../faults/victims.ts';
import { openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const SAVE_INTERVAL_MS = 2_000;

const pages = await openPages({
  '/checkout': '<!doctype html><title>Checkout of 100%_done</title>',
  '/search': '<!doctype html><title>Search</title><form action="/results"><input name="words"></form>',
  '/results':
    '<!doctype html><script>document.title = `Results for ${new URLSearchParams(location.search).get("words")}`</script>',
  '/hostile': `<!doctype html><title></title><script>document.title = 'a\\0b \\ud800 ' + '<b>'.repeat(200)</script>`,
});
const server = await startServer({ clock: 'test', pages });

async function visit(session: CreatedSession, ...urls: readonly string[]): Promise<void> {
  const browser = await chromium.connectOverCDP(session.connectUrl);
  for (const url of urls) await browser.contexts()[0]?.pages()[0]?.goto(url);
  await browser.close();
}

const list = async (query: string): Promise<readonly Session[]> => {
  const { status, body, text } = await server.api<Session[]>('GET', `/v1/browsers/sessions?${query}`);
  assert.equal(status, 200, text);
  return body;
};

const listIds = async (query: string): Promise<readonly string[]> => (await list(query)).map(({ id }) => id);

test('a session shows its last page within seconds, and keeps the last page when the server is killed or the session ends', async () => {
  const session = await server.createSession({ keepAlive: true });
  assert.equal((await list('')).find(({ id }) => id === session.id)?.lastPage, undefined);
  await visit(session, `${pages.a}/`, `${pages.a}/checkout?token=a-secret-9f31&item=7#pay`);
  const lastPage = await eventually(
    'the last page to be saved',
    async () => {
      await server.advance(SAVE_INTERVAL_MS);
      return ((await server.read(session.id)) as Session).lastPage;
    },
    page => page?.title === 'Checkout of 100%_done',
  );
  assert.equal(lastPage?.url, `${pages.a}/checkout?token=[redacted]&item=7#pay`);
  await server.restart('SIGKILL');
  assert.deepEqual(((await server.read(session.id)) as Session).lastPage, lastPage);
  await visit(session, `${pages.a}/next`);
  await server.release(session.id);
  assert.deepEqual(((await server.read(session.id)) as Session).lastPage, { url: `${pages.a}/next`, title: 'Next' });
});

for (const { logSession, lastPage } of [
  { logSession: true, lastPage: { url: `${pages.a}/results?words=[redacted]`, title: 'Results for [redacted]' } },
  { logSession: false, lastPage: { url: `${pages.a}/results`, title: '' } },
])
  test(`text that a client typed is not stored in the last page of a session with logSession ${logSession}`, async () => {
    const session = await server.createSession({ browserSettings: { logSession } });
    const browser = await chromium.connectOverCDP(session.connectUrl);
    const page = browser.contexts()[0]?.pages()[0] ?? assert.fail('no page');
    await page.goto(`${pages.a}/search`);
    await page.locator('input').pressSequentially('order 4711 of Ms Doe');
    await page.locator('input').press('Enter');
    await page.waitForURL('**/results**');
    await server.release(session.id);
    assert.deepEqual(((await server.read(session.id)) as Session).lastPage, lastPage);
  });

test('after a restart, the last page stays redacted, also when the session returns to the page', async () => {
  const session = await server.createSession({ keepAlive: true });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0] ?? assert.fail('no page');
  await page.goto(`${pages.a}/search`);
  await page.locator('input').fill('order 4711 of Ms Doe');
  await page.locator('input').press('Enter');
  await page.waitForURL('**/results**');
  const url = page.url();
  const saveLastPage = async () => {
    await server.advance(SAVE_INTERVAL_MS);
    return ((await server.read(session.id)) as Session).lastPage;
  };
  const redacted = { url: `${pages.a}/results?words=[redacted]`, title: 'Results for [redacted]' };
  await eventually('the last page to be saved', saveLastPage, shown => shown?.title === redacted.title);
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    await server.restart(signal);
    for (let saves = 0; saves < 4; saves++) assert.deepEqual(await saveLastPage(), redacted);
  }
  await visit(session, `${pages.a}/next`);
  await eventually('the next page to be saved', saveLastPage, shown => shown?.title === 'Next');
  await visit(session, url);
  await server.release(session.id);
  assert.deepEqual(((await server.read(session.id)) as Session).lastPage, { url: `${pages.a}/results`, title: '' });
});

test('sessions can be found by words in the title and address of their last page', async () => {
  const [first, second] = [await server.createSession(), await server.createSession()];
  await visit(first, `${pages.a}/checkout`);
  await visit(second, `${pages.b}/next`);
  for (const { id } of [first, second]) await server.release(id);
  const findIds = async (words: string) => listIds(`q=${encodeURIComponent(words)}&limit=2`);
  assert.deepEqual(await findIds('checkout OF'), [first.id]);
  assert.deepEqual(await findIds('100%_'), [first.id]);
  assert.deepEqual(await findIds('b.test /next'), [second.id]);
  assert.deepEqual(await findIds('checkout b.test'), []);
});

test('a session keeps the address of its last page after its browser crashes', async () => {
  const session = await server.createSession();
  const browser = await chromium.connectOverCDP(session.connectUrl);
  await browser.contexts()[0]?.pages()[0]?.goto(`${pages.a}/checkout`);
  kill(boxProcessesOf(server, session.id).browser);
  await eventually('the session to end', async () => (await server.read(session.id)).status === 'ERROR');
  assert.equal(((await server.read(session.id)) as Session).lastPage?.url, `${pages.a}/checkout`);
});

test('a malicious title is stored as plain text with a limited length', async () => {
  const session = await server.createSession();
  await visit(session, `${pages.a}/hostile`);
  await server.release(session.id);
  const { lastPage } = (await server.read(session.id)) as Session;
  assert.ok(lastPage && lastPage.title.length <= 300 && lastPage.title.isWellFormed(), JSON.stringify(lastPage));
  assert.match(lastPage.title, /<b><b>/);
  assert.doesNotMatch(lastPage.title, /\0/);
});

test('sessions can be filtered by duration, which for a running session is the time since its start', async () => {
  const [short, long] = [await server.createSession(), await server.createSession({ keepAlive: true })];
  await server.release(short.id);
  await server.advance(120_000);
  assert.ok((await listIds('atLeastSeconds=100')).includes(long.id));
  assert.ok(!(await listIds('atLeastSeconds=100')).includes(short.id));
  assert.ok((await listIds('atMostSeconds=60')).includes(short.id));
  assert.ok(!(await listIds('atMostSeconds=60')).includes(long.id));
  await server.release(long.id);
  assert.ok((await listIds('atLeastSeconds=100&status=COMPLETED')).includes(long.id));
  for (const bad of ['atLeastSeconds=-1', 'atMostSeconds=soon'])
    assert.equal((await server.api('GET', `/v1/browsers/sessions?${bad}`)).status, 400, bad);
});
