// The server as an ordinary user: its sessions run in the same jail, survive when the server is killed, and leave
// nothing behind.
import assert from 'node:assert/strict';
import { readFileSync, readlinkSync } from 'node:fs';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import { CdpClient } from '../harness/cdp.ts';
import { makeOrdinaryUser } from '../harness/ordinary-user.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';
import { browserProcessOf, processesOf } from '../harness/session-processes.ts';

const pages = await openPages();
/** A web server on a port that sessions cannot reach. */
const forbiddenPages = await openPages();
const user = makeOrdinaryUser();
const server = await startServer({ user, pages });

/** Effective user id in the initial namespace. Undefined if the process has ended. */
function uidOf(pid: number): number | undefined {
  try {
    return Number(/^Uid:\t\d+\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    return undefined;
  }
}

test('the server reports rootless isolation and runs as an ordinary user', () => {
  assert.ok(
    server.log().some(line => line.includes('isolation: rootless')),
    server.log().join('\n'),
  );
  assert.equal(uidOf(server.pid), user.uid);
});

test('a session loads pages, and cannot open forbidden addresses or files', async () => {
  const session = await server.createSession({ keepAlive: true });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const page = browser.contexts()[0]?.pages()[0];
  await page?.goto(pages.a);
  assert.equal(await page?.title(), 'Home');
  const refusal = await page?.goto(forbiddenPages.url);
  assert.equal(refusal?.status(), 403, 'addresses that the operator did not allow are refused');
  await assert.rejects(async () => page?.goto('file:///etc/passwd'), /refused/);
  await browser.close();
  await server.release(session.id);
  await server.waitUntilSettled();
});

test('the browser of a session has its own namespaces, and all of its processes run as the user of the server', async () => {
  const session = await server.createSession({ keepAlive: true });
  const { pid } = browserProcessOf(session.id);
  for (const kind of ['net', 'pid', 'mnt', 'user', 'ipc', 'uts'])
    assert.notEqual(readlinkSync(`/proc/${pid}/ns/${kind}`), readlinkSync(`/proc/${server.pid}/ns/${kind}`), kind);
  // Processes that have ended since the list was made are ignored.
  const processUids = processesOf(session.id).map(one => [one.command, uidOf(one.pid)] as const);
  const liveProcessUids = processUids.filter(([, uid]) => uid !== undefined);
  assert.ok(liveProcessUids.length > 0);
  for (const [command, uid] of liveProcessUids) assert.equal(uid, user.uid, command);
  await server.release(session.id);
});

test('a page is unchanged after the server is killed and restarted', async () => {
  const session = await server.createSession({ keepAlive: true });
  const clientBefore = await CdpClient.connect(session.connectUrl);
  const page = await clientBefore.attachToPage();
  await clientBefore.send('Page.navigate', { url: `${pages.a}/next` }, page);
  await clientBefore.evaluate('globalThis.kept = 7', page);
  await server.restart('SIGKILL');
  const clientAfter = await CdpClient.connect(session.connectUrl);
  assert.equal(await clientAfter.evaluate('globalThis.kept', await clientAfter.attachToPage()), 7);
  await clientAfter.close();
  await server.release(session.id);
  await server.waitUntilSettled();
});

test('the user of the server can create keys while the server is running', async () => {
  const { code, stdout, stderr } = await server.berth('keys', 'create', '--json');
  assert.equal(code, 0, stderr);
  const { key } = JSON.parse(stdout);
  assert.equal((await server.api('GET', '/v1/browsers/sessions', { key })).status, 200);
});

test('the stop command stops the server and every browser that is still running', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const { code, stdout, stderr } = await server.berth('stop', '--json');
  assert.equal(code, 0, stderr);
  const { stopped, ended } = JSON.parse(stdout);
  assert.deepEqual({ stopped, ended }, { stopped: true, ended: [id] });
  assert.deepEqual(processesOf(id), []);
  await server.start();
  const session = await server.read(id);
  assert.deepEqual([session.status, session.endReason], ['COMPLETED', 'operator']);
});
