// A browser writes malformed messages: incomplete ones, values of the wrong type, and invalid JSON. Only the malformed
// message is lost, or at worst the session of that browser. The server and other sessions are not affected.
import assert from 'node:assert/strict';
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CdpClient } from '../harness/cdp.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { assertEnded } from './aftermath.ts';
import { isResponsive } from './clients.ts';

/** The number of malformed messages after which the server ends a session. */
const MALFORMED_MAX = 100;

const pages = await openPages({ '/silent': () => {} });
const server = await startServer({ pages, env: { BERTH_SLOTS: '4' } });
const neighbour = await server.createSession({ keepAlive: true });

/** Writes messages to the output pipe of the session's browser. Each message ends with a NUL. */
function writeAsBrowser(session: string, messages: readonly string[]): void {
  const fifo = join(server.dataDir, 'sessions', server.boxOf(session) ?? session, 'notes/out');
  const descriptor = openSync(fifo, constants.O_WRONLY);
  try {
    for (const message of messages) writeSync(descriptor, `${message}\0`);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * The ids of all channels in the file notes/channels of the session: first those of the server, then those of clients.
 */
function channelsOf(session: string): string[] {
  const channelsFile = join(server.dataDir, 'sessions', server.boxOf(session) ?? session, 'notes/channels');
  return [...readFileSync(channelsFile, 'utf8').matchAll(/\+([0-9A-F]{32})/g)].map(([, id = '']) => id);
}

/** Malformed messages for the channel with this id. */
const MALFORMED_MESSAGES: ReadonlyArray<(channel: string) => string> = [
  channel => `{"method":"Target.attachedToTarget","params":{,"sessionId":"${channel}"}`,
  channel => `{"method":"Target.targetCreated","params":7,"sessionId":"${channel}"}`,
  channel => `{"method":{"toString":1},"params":{},"sessionId":"${channel}"}`,
  channel => `{"id":1,"result":nothing,"sessionId":"${channel}"}`,
  channel => `{"id":1,"error":"no","sessionId":"${channel}"}`,
  channel => `[${'['.repeat(100_000)},"sessionId":"${channel}"}`,
  channel => `{"method":"Target.detachedFromTarget","params":{"sessionId":{"valueOf":1}},"sessionId":"${channel}"}`,
  channel => `\ufeff{"method":"Target.x"\ud800,"sessionId":"${channel}"}`,
];

/** The messages that the gateway reads on a client's channel. The gateway forwards all other messages unchanged. */
const TARGET_MESSAGES = MALFORMED_MESSAGES.filter(write => write('').startsWith('{"method":"Target.'));

test('malformed messages from a browser are dropped, the session keeps running, and its clients stay connected', async () => {
  const { pid } = server;
  const session = await server.createSession({ keepAlive: true });
  const serverChannels = channelsOf(session.id);
  assert.ok(serverChannels.length > 0, 'the server has channels');
  const client = await CdpClient.connect(session.connectUrl);
  const page = await client.attachToPage();
  const [root = ''] = channelsOf(session.id).slice(serverChannels.length);
  for (const channel of serverChannels)
    writeAsBrowser(
      session.id,
      MALFORMED_MESSAGES.map(write => write(channel)),
    );
  for (const channel of [root, page])
    writeAsBrowser(
      session.id,
      TARGET_MESSAGES.map(write => write(channel)),
    );
  writeAsBrowser(session.id, ['', '{', 'null', '7', '"x"', '{"id":1}', '{"id":{}}']);
  assert.equal(await client.evaluate('6 * 7', page), 42);
  assert.ok(await isResponsive(session), 'other clients can connect');
  assert.ok(await isResponsive(neighbour));
  assert.equal(server.pid, pid);
  await client.close();
  await server.release(session.id);
});

test('a command gets an error if the response of the browser is malformed', async () => {
  const session = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(session.connectUrl);
  const page = await client.attachToPage();
  // Chromium never responds to this navigation, because the page's server does not respond. The gateway reads responses
  // to navigations, so it detects the malformed one.
  const { error } = await client.askRaw(id => {
    const send = (): void => writeAsBrowser(session.id, [`{"id":${id},"result":broken,"sessionId":"${page}"}`]);
    void eventually('the navigation', () => pages.hits('/silent') > 0).then(send);
    return `{"id":${id},"method":"Page.navigate","params":{"url":"${pages.url}/silent"},"sessionId":"${page}"}`;
  });
  assert.match(error?.message ?? '', /not a CDP message/);
  await client.close();
  await server.release(session.id);
});

test('a session ends as crashed after too many malformed messages, and other sessions are not affected', async () => {
  const { pid } = server;
  const session = await server.createSession({ keepAlive: true });
  const [channel = ''] = channelsOf(session.id);
  writeAsBrowser(
    session.id,
    Array.from({ length: MALFORMED_MAX + 50 }, () => `{"method":"Target.x",,"sessionId":"${channel}"}`),
  );
  await assertEnded(server, session.id, 'ERROR', 'crashed');
  assert.ok(await isResponsive(neighbour));
  assert.equal(server.pid, pid);
  const lossLines = server.log().filter(line => line.includes('browser.message_lost'));
  assert.ok(
    lossLines.length > 0 && lossLines.length <= 3 * MALFORMED_MAX,
    `${lossLines.length} log lines for lost messages`,
  );
});
