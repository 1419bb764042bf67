// Secrets in a session are never stored, whether they are typed, passed as a parameter of a command, sent in a request,
// set as a cookie or in storage, or logged. A page that logs more than can be stored has a limited log.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import type { SessionLog } from '../../contract/logs.ts';
import type { Session } from '../../contract/sessions.ts';
import { CdpClient } from '../harness/cdp.ts';
import { assertHar } from '../harness/har.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

/** Secrets that are searched for in every stored file and response. */
const SECRETS = {
  authorization: 'seed-Authz-8f3a91',
  basic: 'seed-Basic-77b2c4',
  cookie: 'seed-Cookie-5d41aa',
  scriptCookie: 'seed-Jscookie-90ab12',
  addedCookie: 'seed-Added-33f7e1',
  apiKey: 'seed-Apikey-6e0d2b',
  userInfo: 'seed-Userinfo-b81c07',
  query: 'seed-Query-2f9d64',
  fragment: 'seed-Fragment-c05a3e',
  socketQuery: 'seed-Socket-d7714f',
  socketMessage: 'seed-Message-4a8be0',
  body: 'seed-Body-19c6d8',
  responseBody: 'seed-Answer-e2b750',
  filled: 'seed-Filled-0b6f92!',
  typed: 'seed-Typed-a4e81d',
  inserted: 'seed-Inserted-77d03c',
  argument: 'seed-Argument-5b1f66',
  literal: 'seed-Literal-c93e20',
  storage: 'seed-Storage-2d8840',
  prompt: 'seed-Prompt-f01b7c',
  jwt: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzZWVkLUp3dCJ9.c2VlZC1Kd3Qtc2lnbmF0dXJl',
} as const;
const FLOOD_LINES = 100_000;
const FLOOD_TIMEOUT_MS = 240_000;

const LOGIN_PAGE = `<!doctype html><title>Login</title>
<form action="/landed" method="get"><input id="user" name="user"><input id="password" type="password" name="pw"></form>
<input id="free" type="password">
<script>
  document.cookie = 'js=${SECRETS.scriptCookie}';
  localStorage.setItem('note', '${SECRETS.storage}');
  // A page that logs every input.
  for (const input of document.querySelectorAll('input'))
    input.addEventListener('input', () => console.log('input', input.value, { value: input.value }));
  const socket = new WebSocket('ws://' + location.host + '/ws?access_token=${SECRETS.socketQuery}');
  socket.onopen = () => socket.send('${SECRETS.socketMessage}');
  (async () => {
    await fetch('/api', { method: 'POST', body: JSON.stringify({ note: '${SECRETS.body}' }),
      headers: { authorization: 'Bearer ${SECRETS.authorization}', 'x-api-key': '${SECRETS.apiKey}' } });
    await fetch('/api?token=${SECRETS.query}#access_token=${SECRETS.fragment}');
    console.log('Authorization: Basic ${SECRETS.basic}', { password: '${SECRETS.query}' }, 'jwt ${SECRETS.jwt}');
    console.error(new Error('GET http://user:${SECRETS.userInfo}@' + location.host + '/x?token=${SECRETS.query} failed'));
    console.log('api done');
  })();
</script>`;
const FLOOD_PAGE = `<!doctype html><title>Flood</title><script>
  for (let line = 0; line < ${FLOOD_LINES}; line++) console.log('line', line);
  fetch('/api').then(() => { location.hash = 'over'; document.title = 'over'; });
</script>`;

const pages = await openPages({
  '/login': (_, response) => {
    const headers = { 'content-type': 'text/html', 'set-cookie': `sid=${SECRETS.cookie}; HttpOnly; Path=/` };
    response.writeHead(200, headers).end(LOGIN_PAGE);
  },
  '/api': (_, response) => {
    const headers = {
      'content-type': 'text/plain',
      'set-cookie': `api=${SECRETS.cookie}`,
      location: `/x?token=${SECRETS.query}`,
    };
    response.writeHead(200, headers).end(SECRETS.responseBody);
  },
  '/landed': '<!doctype html><title>Landed</title>',
  '/flood': FLOOD_PAGE,
});
const server = await startServer({ pages, env: { BERTH_SLOTS: '4' } });

const logPath = (id: string): string => `/v1/browsers/sessions/${id}/logs`;
async function readLog(id: string): Promise<SessionLog[]> {
  const reply = await server.api<SessionLog[]>('GET', logPath(id));
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}
const paramsOf = (entry: SessionLog): Record<string, unknown> => Object(entry.request?.params);

/** Asserts that the text contains none of the secrets, neither unchanged nor URL-encoded nor base64-encoded. */
function assertClean(where: string, text: string | Buffer): void {
  for (const [name, seed] of Object.entries(SECRETS))
    for (const secretForm of [
      seed,
      encodeURIComponent(seed),
      Buffer.from(seed).toString('base64').replace(/=+$/, '').slice(0, -1),
    ])
      assert.ok(!text.includes(secretForm), `${where} contains the secret ${name}: ${excerptAround(text, secretForm)}`);
}

function excerptAround(text: string | Buffer, found: string): string {
  const at = text.indexOf(found);
  return String(text.slice(Math.max(0, at - 300), at + 100));
}

function* filesUnder(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesUnder(path);
    else if (entry.isFile()) yield path;
  }
}

test('the log of a page with a hundred thousand entries is limited, and the number of dropped entries is recorded', async () => {
  const neighbourSession = await server.createSession();
  const neighbourClient = await CdpClient.connect(neighbourSession.connectUrl);
  const neighbourChannel = await neighbourClient.attachToPage();
  const session = await server.createSession();
  const client = await CdpClient.connect(session.connectUrl);
  const page = await client.attachToPage();
  const navigation = client.send('Page.navigate', { url: `${pages.url}/flood` }, page);
  let isOver = false;
  const evaluation = JSON.stringify({ expression: 'document.title', returnByValue: true });
  // The page sets the title once it has logged everything.
  const readTitle = async (): Promise<unknown> => {
    await navigation;
    const ask = (id: number): string =>
      `{"id":${id},"method":"Runtime.evaluate","params":${evaluation},"sessionId":"${page}"}`;
    const { result } = await client.askRaw(ask, 'the title of the flood', FLOOD_TIMEOUT_MS);
    return Object(result?.result).value;
  };
  const floodEnd = eventually('the flood to be over', readTitle, found => found === 'over', FLOOD_TIMEOUT_MS).finally(
    () => {
      isOver = true;
    },
  );
  floodEnd.catch(() => {}); // The promise is awaited below.
  for (let count = 0; !isOver; count++)
    assert.equal(await neighbourClient.evaluate(`${count}`, neighbourChannel), count);
  await floodEnd;
  const hasApiRequest = (log: readonly SessionLog[]): boolean =>
    log.some(entry => JSON.stringify(paramsOf(entry)).includes('/api'));
  await server.release(session.id);
  const log: SessionLog[] = [];
  for (let cursor = '0'; ; ) {
    const reply = await server.api<SessionLog[]>('GET', `${logPath(session.id)}?after=${cursor}`);
    log.push(...reply.body);
    if (reply.body.length === 0) break;
    cursor = String(reply.headers['x-next-after']);
  }
  const keptCount = log.filter(entry => entry.method === 'Runtime.consoleAPICalled').length;
  const markers = log
    .filter(entry => entry.method === 'Log.entriesDropped')
    .map(paramsOf)
    .filter(({ type }) => type === 'console');
  const droppedCount = markers.reduce((sum, { count }) => sum + Number(count), 0);
  // The sum may be one higher, because the browser itself may report that the page has no icon.
  assert.ok(
    [0, 1].includes(keptCount + droppedCount - FLOOD_LINES),
    `${keptCount} were kept, ${droppedCount} were reported as dropped`,
  );
  assert.ok(
    keptCount >= 1_000 && keptCount <= 20_000 && markers.length < 20,
    `${keptCount} kept, ${markers.length} markers`,
  );
  const otherPageResponse = await server.api<SessionLog[]>(
    'GET',
    `${logPath(session.id)}?pageId=7&type=console&limit=1000`,
  );
  assert.equal(otherPageResponse.body.length, markers.length, 'what was dropped may have been of any page');
  assert.ok(hasApiRequest(log), 'the request after the flood is in the log');
  await server.release(neighbourSession.id);
});

test('no secret is stored in the log, the HAR file, the events or any other file', async () => {
  const session = await server.createSession();
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const context = browser.contexts()[0] ?? assert.fail('no context');
  const page = context.pages()[0] ?? assert.fail('no page');
  page.on('dialog', dialog => void dialog.accept(SECRETS.prompt));
  await context.addCookies([{ name: 'added', value: SECRETS.addedCookie, url: pages.url }]);
  await page.setExtraHTTPHeaders({ 'X-Auth-Token': SECRETS.basic });
  const done = page.waitForEvent('console', message => message.text() === 'api done');
  await page.goto(`${pages.url}/login?token=${SECRETS.query}#access_token=${SECRETS.fragment}`);
  await done;
  await page.fill('#password', SECRETS.filled);
  assert.equal(await page.inputValue('#password'), SECRETS.filled);
  await page.locator('#user').pressSequentially(SECRETS.typed);
  await page.focus('#free');
  await page.keyboard.insertText(SECRETS.inserted);
  await page.evaluate(text => console.log('given', text, [text]), SECRETS.argument);
  assert.match(String(await page.evaluate('document.cookie')), /seed/);
  assert.equal(await page.evaluate("localStorage.getItem('note')"), SECRETS.storage);
  await page.evaluate("prompt('say it')");
  const rawClient = await CdpClient.connect(session.connectUrl);
  const channel = await rawClient.attachToPage();
  await rawClient.evaluate(
    `document.querySelector('#free').value = "${SECRETS.literal}"; /* it's */ document.cookie`,
    channel,
  );
  await rawClient.evaluate('document.querySelector("#free").value', channel);
  await page.evaluate('document.forms[0].submit()');
  await page.waitForURL('**/landed**');
  await eventually(
    'the last page to be stored',
    async () => ((await server.read(session.id)) as Session).lastPage?.title,
    title => title === 'Landed',
  );
  await page.goto(`${pages.url.replace('://', `://user:${SECRETS.userInfo}@`)}/next`);
  await page.evaluate(() => console.log('the very last words'));
  await rawClient.close();
  const isLast = (entry: SessionLog): boolean => JSON.stringify(paramsOf(entry)).includes('the very last words');
  await eventually(
    'the log to be written',
    () => readLog(session.id),
    log => log.some(isLast),
    60_000,
  );
  await browser.close();
  await server.release(session.id).catch(() => {}); // The session may have ended with its last client.
  await server.waitUntilEnded(session.id);

  const logResponse = await server.api('GET', logPath(session.id));
  for (const word of [
    '/login',
    '/api',
    '/landed',
    'api done',
    'Input.insertText',
    'Runtime.callFunctionOn',
    '[redacted]',
  ])
    assert.ok(logResponse.text.includes(word), `${word} is in the log`);
  assertClean('the log', logResponse.text);
  const harResponse = await server.api('GET', `${logPath(session.id)}?format=har`);
  assertHar(JSON.parse(harResponse.text));
  assertClean('the HAR file', harResponse.text);
  assertClean('the events', (await server.api('GET', `/v1/browsers/sessions/${session.id}/events`)).text);
  assertClean("the server's own log", server.log().join('\n'));
  await server.kill('SIGINT');
  let fileCount = 0;
  for (const path of filesUnder(server.dataDir)) {
    assertClean(path.slice(server.dataDir.length), readFileSync(path));
    fileCount++;
  }
  assert.ok(fileCount > 100, 'the search included the files of the database');
});
