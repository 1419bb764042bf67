// Metrics and readiness are for the operator. They are never served at the public address, in any spelling of the
// path, and no session can reach the operator's listener.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { CdpClient } from '../harness/cdp.ts';
import { claimFreePort } from '../harness/free-port.ts';
import { createOwnerToken } from '../harness/limits.ts';
import { startServer } from '../harness/server.ts';

const operatorPort = await claimFreePort();
// The operator has opened loopback to sessions. This must not open the port of the operator's listener.
const env = { BERTH_OPERATOR_LISTEN: `127.0.0.1:${operatorPort}`, BERTH_EGRESS_ALLOW: '127.0.0.0/8' };
const server = await startServer({ env });
const token = await createOwnerToken(server);

const PATHS = [
  '/metrics',
  '/readyz',
  '/metrics/',
  '//metrics',
  '/./metrics',
  '/%6detrics',
  '/healthz/../metrics',
  '/v1/metrics',
  '/v1/readyz',
];
const OPERATOR_DATA = /berth_|process_cpu|"checks"|not_ready/;

/** Sends the path unchanged, because `fetch` would normalize it. */
async function requestRaw(path: string, headers: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.end([`GET ${path} HTTP/1.1`, 'Host: 127.0.0.1', 'Connection: close', ...headers, '', ''].join('\r\n'));
  return text(socket);
}

for (const path of [...PATHS, `http://127.0.0.1:${operatorPort}/metrics`])
  test(`the public address returns 404 for ${path.replace(String(operatorPort), 'PORT')}`, async () => {
    const host = `X-Forwarded-Host: 127.0.0.1:${operatorPort}`;
    for (const headers of [[], [`Authorization: Bearer ${server.key}`], [`Authorization: Bearer ${token}`], [host]]) {
      const response = await requestRaw(path, headers);
      assert.match(response, /^HTTP\/1\.1 404 /, response);
      assert.doesNotMatch(response, OPERATOR_DATA);
    }
  });

const LISTEN_STATE = '0A';

/** The TCP ports on which a process listens, found through the sockets among its open files. */
function findListeningPorts(pid: number): number[] {
  const files = readdirSync(`/proc/${pid}/fd`).map(fd => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return ''; // The descriptor was closed in the meantime.
    }
  });
  const rows = ['tcp', 'tcp6'].flatMap(name => readFileSync(`/proc/${pid}/net/${name}`, 'utf8').trim().split('\n'));
  return rows
    .map(row => row.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === LISTEN_STATE && files.includes(`socket:[${inode}]`))
    .map(([, address = '']) => Number.parseInt(address.split(':').at(-1) ?? '', 16));
}

test('the server listens only on the public port and the operator port', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const expectedPorts = [Number(new URL(server.url).port), operatorPort];
  assert.deepEqual(findListeningPorts(server.pid).toSorted(), expectedPorts.toSorted());
  await server.release(id);
});

test('a session cannot reach the operator port, even if loopback is opened to sessions', async () => {
  const session = await server.createSession({ keepAlive: true });
  const client = await CdpClient.connect(session.connectUrl);
  const page = await client.attachToPage();
  for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '2130706433', '0.0.0.0']) {
    await client.visit(`http://${host}:${operatorPort}/metrics`, page).catch(() => {});
    assert.doesNotMatch(String(await client.evaluate('document.body?.innerText ?? ""', page)), OPERATOR_DATA, host);
  }
  await client.close();
  await server.release(session.id);
  assert.equal((await server.fetchFromOperator('/metrics')).status, 200);
});
