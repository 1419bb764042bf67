// Connections from inside: the pages of a session can reach the connect address of that session, but no other address
// of the service.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CdpClient } from '../harness/cdp.ts';
import { openPages } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';

const SESSIONS = '/v1/browsers/sessions';

const pages = await openPages();
const server = await startServer({ pages });

const session = await server.createSession({ keepAlive: true });
const otherSession = await server.createSession({ keepAlive: true });
const client = await CdpClient.connect(session.connectUrl);
const page = await client.attachToPage();
await client.visit(pages.a, page);

const evaluateInPage = (expression: string): Promise<unknown> => client.evaluate(expression, page);

/** Opens a WebSocket from the page and sends one command. Resolves to the response. */
const sendFromPage = (url: string): Promise<unknown> =>
  evaluateInPage(`new Promise(resolve => {
    const socket = new WebSocket(${JSON.stringify(url)});
    socket.onopen = () => socket.send(JSON.stringify({ id: 1, method: 'Browser.getVersion' }));
    socket.onmessage = message => { resolve(JSON.parse(message.data)); socket.close(); };
    socket.onerror = () => resolve('refused');
  })`);

test('a page can use the connect address of its own session', async () => {
  const reply: { id?: number; result?: { product?: string } } = Object(await sendFromPage(session.connectUrl));
  assert.equal(reply.id, 1);
  assert.match(String(reply.result?.product), /^Chrome\//);
});

test('a page that connects to its own session needs the signing key', async () => {
  assert.equal(await sendFromPage(session.connectUrl.replace(/\?.*/, '')), 'refused');
  assert.equal(await sendFromPage(`${session.connectUrl}x`), 'refused');
});

test('a page cannot use the connect address of another session, even with the signing key of that session', async () => {
  assert.equal(await sendFromPage(otherSession.connectUrl), 'refused');
  const outsideClient = await CdpClient.connect(otherSession.connectUrl);
  await outsideClient.send('Browser.getVersion');
  await outsideClient.close();
});

for (const path of [
  '/',
  '/healthz',
  '/metrics',
  '/docs',
  SESSIONS,
  `${SESSIONS}/${session.id}`,
  `${SESSIONS}/${session.id}/connect/json/version`,
])
  test(`a page cannot reach other paths of the service: ${path}`, async () => {
    const linesBefore = server.log().length;
    const status = await evaluateInPage(
      `fetch(${JSON.stringify(`${server.url}${path}?signingKey=${session.signingKey}`)}, { mode: 'no-cors' }).then(answer => answer.text(), () => 'failed')`,
    );
    assert.ok(status === 'failed' || status === '', String(status));
    await client.visit(`${server.url}${path}`, page);
    const text = String(await evaluateInPage('document.body?.innerText ?? ""'));
    assert.doesNotMatch(text, /berth_|"status"|Berth \d|webSocketDebuggerUrl|createdAt/);
    const beginLines = server
      .log()
      .slice(linesBefore)
      .filter(line => line.includes('.begin"'));
    assert.deepEqual(beginLines, [], 'no operation saw the request');
    await client.visit(pages.a, page);
  });

test('a page cannot use the connect address of another session under other names and spellings of the host', async () => {
  const { port } = new URL(server.url);
  const { pathname, search } = new URL(otherSession.connectUrl);
  for (const host of ['localhost', '127.1', '0x7f000001', '[::1]', '[::ffff:127.0.0.1]', '0.0.0.0', 'a.test'])
    assert.equal(await sendFromPage(`ws://${host}:${port}${pathname}${search}`), 'refused', host);
});

test('a connection from an extension inside the browser does not keep the session alive', async () => {
  const briefSession: CreatedSession = await server.createSession();
  const insideClient = await CdpClient.connect(briefSession.connectUrl, {
    origin: 'chrome-extension://abcdefghijklmnopabcdefghijklmnop',
  });
  const outsideClient = await CdpClient.connect(briefSession.connectUrl);
  await outsideClient.close();
  const endedSession = await server.waitUntilEnded(briefSession.id);
  assert.deepEqual([endedSession.status, endedSession.endReason], ['COMPLETED', 'client_disconnected']);
  assert.equal((await insideClient.waitForClose()).code, 1000);
});

test('ended sessions leave no process, file or unfinished database row behind', async () => {
  await client.close();
  await server.release(session.id);
  await server.release(otherSession.id);
  await server.waitUntilSettled();
});
