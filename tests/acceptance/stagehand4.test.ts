// Stagehand 4 from npm, unmodified, without a model. Its extension is uploaded and loaded into the browser, and
// connects to the session's address from inside.
import '../harness/only-loopback.ts';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { browserbase, Stagehand } from 'stagehand4';
import type { SessionEventPage } from '../../contract/events.ts';
import type { Session } from '../../contract/sessions.ts';
import { openCountingProxy } from '../harness/counting-proxy.ts';
import { attemptedDestinations } from '../harness/only-loopback.ts';
import { openPages } from '../harness/pages.ts';
import { CHECKOUT, startServer } from '../harness/server.ts';
import { eventually, withTimeLimit } from '../harness/until.ts';

const SESSIONS = '/v1/browsers/sessions';
const MODEL = { modelName: 'openai/gpt-4.1-mini', apiKey: 'sk-a-key-of-the-callers-model' } as const;

const pages = await openPages();
const server = await startServer({ pages });
const proxy = await openCountingProxy(server.url);

for (const path of ['', '/v1/browsers'])
  test(`Stagehand launches with the base address ${path || 'of the server'}, controls pages, closes, and leaves no session behind`, async () => {
    proxy.takeRequests();
    // The session can reach only the page of the test. Other requests are refused and recorded as events.
    const ours: object = { networkPolicy: { default: 'deny', allow: ['a.test'] } };
    const options = { apiKey: server.key, baseUrl: `${proxy.url}${path}` };
    const browser = await browserbase.launch({ ...options, browserSettings: { blockAds: false, ...ours } });
    const stagehand = await Stagehand.create({ browser, model: MODEL, logging: { level: 'off' } });
    const id = browser.sessionId;
    assert.ok(id);
    const session = await server.read(id);
    assert.equal(session.status, 'RUNNING');
    assert.equal(session.userMetadata?.stagehand, 'true');
    await eventually('a call of the extension from inside the browser', () =>
      server.log().some(line => line.includes(id) && line.includes('"inside":true')),
    );

    const [page] = await browser.context.pages();
    assert.ok(page);
    await page.goto(pages.a);
    assert.equal(await page.title(), 'Home');
    assert.equal(await page.evaluate('1 + 1'), 2);
    await page.locator('#next').click();
    assert.ok(await page.waitForSelector('h1'));
    await page.waitForFunction("document.title === 'Next'");
    assert.equal(await page.locator('h1').textContent(), 'Next');
    const otherPage = await browser.context.newPage(`${pages.a}/next`);
    await eventually(
      'the new page',
      () => otherPage.title().catch(() => ''),
      title => title === 'Next',
    );

    await stagehand.close();
    await browser.close();
    const endedSession = await server.waitUntilEnded(id);
    assert.deepEqual([endedSession.status, endedSession.endReason], ['COMPLETED', 'released']);
    const { body } = await server.api<SessionEventPage>('GET', `${SESSIONS}/${id}/events`);
    assert.deepEqual(
      body.data.filter(({ type }) => type === 'network.refused').map(({ detail }) => detail.hostname),
      [],
    );
    const requests = proxy
      .takeRequests()
      .map(one => `${one.method} ${one.path.replace(/^.*\/v1\//, '').replace(/[0-9a-f-]{36}/, 'ID')}`);
    assert.deepEqual(requests, ['POST extensions', 'POST sessions', 'POST sessions/ID', 'DELETE extensions/ID']);
  });

test('a session ends when its Stagehand program is killed, even though the extension is still connected', async () => {
  const script = join(CHECKOUT, 'tests/harness/stagehand4-client.ts');
  const program = spawn(process.execPath, [script, server.url, server.key, pages.a], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [line] = await withTimeLimit(
      'the program to drive its page',
      once(createInterface(program.stdout), 'line'),
      60_000,
    );
    const id = String(line).replace('running ', '');
    assert.equal((await server.read(id)).status, 'RUNNING');
    program.kill('SIGKILL');
    const endedSession = await server.waitUntilEnded(id);
    assert.deepEqual([endedSession.status, endedSession.endReason], ['COMPLETED', 'client_disconnected']);
  } finally {
    program.kill('SIGKILL');
  }
});

test('Stagehand sends nothing to other machines, the model key is not logged, and no process, file or unfinished database row is left behind', async () => {
  assert.deepEqual(attemptedDestinations(), []);
  assert.ok(!server.log().some(line => line.includes(MODEL.apiKey)));
  const openSessionsResponse = await server.api<Session[]>('GET', `${SESSIONS}?status=PENDING,RUNNING`);
  assert.deepEqual(openSessionsResponse.body, []);
  await server.waitUntilSettled();
});
