// The container image with the privileges from docs/guides/container.md. Sessions work, outlive their server, and are
// shut down cleanly when the container stops. The attacks of jail.test.ts are refused in the container.
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import type { Session } from '../../contract/sessions.ts';
import { Scope } from '../../server/kit/scope.ts';
import { COPIED_PATHS } from '../engines/slots-user.ts';
import { startForeignServer } from '../engines/store-fixtures.ts';
import { CdpClient } from '../harness/cdp.ts';
import { buildImage, PRIVILEGE_OPTIONS, runPodman, startPodman, stopContainer } from '../harness/container.ts';
import { claimFreePort } from '../harness/free-port.ts';
import { sendRequest } from '../harness/http.ts';
import { createTemporaryFolder, makeRelease } from '../harness/install-release.ts';
import { CHECKOUT, type CreatedSession } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { ATTACKS, NETWORK_SCRIPT, type Outcome } from './jail-attacks.ts';

const READY_TIMEOUT_MS = 180_000;
const NAME = `berth-test-${process.pid}`;
const VOLUME = `${NAME}-data`;

const folder = createTemporaryFolder();
const image = buildImage(makeRelease(folder));
const scope = new Scope();
after(() => scope.close());
const database = await startForeignServer(scope);
const [port, operatorPort] = [await claimFreePort(), await claimFreePort()];
const url = `http://127.0.0.1:${port}`;
const lines: string[] = [];
let key = '';

const container = startContainer();
after(async () => {
  await stopContainer(NAME, container);
  runPodman('volume', 'rm', '--force', VOLUME);
  assert.equal(
    statSync('/dev/null').uid,
    0,
    'crun has changed the owner of /dev/null on this machine; run: chown root:root /dev/null',
  );
});
await eventually('the container to be ready', isReady, Boolean, READY_TIMEOUT_MS);
await eventually('the key to be printed', () => key !== '');

function startContainer(): ChildProcess {
  const settings = {
    DATABASE_URL: database.url.reveal(),
    BERTH_LISTEN: `127.0.0.1:${port}`,
    BERTH_OPERATOR_LISTEN: `127.0.0.1:${operatorPort}`,
    BERTH_SLOTS: '2',
    BERTH_WARM: '0',
    BERTH_ADOPT_GRACE: '600',
  };
  const env = Object.entries(settings).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  const containerOptions = ['--name', NAME, '--network', 'host', '--volume', `${VOLUME}:/data:U`];
  const child = startPodman(['run', '--rm', '--interactive', ...containerOptions, ...PRIVILEGE_OPTIONS, ...env, image]);
  for (const stream of [child.stdout, child.stderr])
    if (stream)
      createInterface(stream).on('line', line => {
        lines.push(line);
        key ||= /^ {2}key\s+(bak_\S+)$/.exec(line)?.[1] ?? '';
      });
  return child;
}

async function isReady(): Promise<boolean> {
  if (container.exitCode !== null) throw new Error(`the container ended:\n${lines.slice(-40).join('\n')}`);
  return (await sendRequest(`http://127.0.0.1:${operatorPort}/readyz`, {}).catch(() => undefined))?.status === 200;
}

const runInside = (...command: readonly string[]): string => runPodman('exec', '--interactive', NAME, ...command);

async function api<Body>(method: string, path: string, body?: object): Promise<Body> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const bodyOption = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await sendRequest<Body>(url + path, { method, headers, ...bodyOption });
  assert.ok(response.status < 300, `${path}: ${response.status} ${response.text}`);
  return response.body;
}

const create = (): Promise<CreatedSession> => api('POST', '/v1/browsers/sessions', { keepAlive: true });
const read = (id: string): Promise<Session> => api('GET', `/v1/browsers/sessions/${id}`);

async function markPage(session: CreatedSession): Promise<unknown> {
  const client = await CdpClient.connect(session.connectUrl);
  try {
    return await client.evaluate('globalThis.kept ??= 7', await client.attachToPage());
  } finally {
    await client.close();
  }
}

test('the container has no capabilities, and it has no_new_privs, a seccomp filter and a read-only root', () => {
  const status = runInside('cat', '/proc/1/status');
  for (const line of ['CapEff:\t0000000000000000', 'CapBnd:\t0000000000000000', 'NoNewPrivs:\t1', 'Seccomp:\t2'])
    assert.ok(status.includes(line), line);
  assert.match(status, /^Name:\ttini$/m);
  assert.match(status, /^Uid:\t1000\t/m);
  assert.throws(() => runInside('touch', '/probe'), /Read-only file system/);
  assert.ok(
    lines.some(line => line.includes('isolation: rootless')),
    'sessions run in jails',
  );
});

test('a session continues when the server is killed or restarted', async () => {
  const session = await create();
  const keptExpression = 'globalThis.kept';
  assert.equal(await markPage(session), 7);
  const restarts = {
    killed: () => runInside('sh', '-c', `kill -KILL $(sed -n 's/.*"pid":\\([0-9]*\\).*/\\1/p' /data/server.json)`),
    restarted: () => runInside('berth-supervise', 'restart'),
  };
  for (const [how, restart] of Object.entries(restarts)) {
    const startsBefore = lines.filter(line => line.startsWith('Berth listens')).length;
    restart();
    await eventually(
      `a server after it was ${how}`,
      () => lines.filter(line => line.startsWith('Berth listens')).length > startsBefore,
      Boolean,
      READY_TIMEOUT_MS,
    );
    await eventually('the container to be ready', isReady, Boolean, READY_TIMEOUT_MS);
    assert.equal((await read(session.id)).status, 'RUNNING', how);
    const client = await CdpClient.connect(session.connectUrl);
    assert.equal(await client.evaluate(keptExpression, await client.attachToPage()), 7, how);
    await client.close();
  }
  assert.match(runInside('berth', 'status'), /^service {3}ready/);
  await api('POST', `/v1/browsers/sessions/${session.id}`, { status: 'REQUEST_RELEASE' });
});

test('attacks on the jail fail in the container', async t => {
  const checkout = join(folder, 'checkout');
  for (const part of COPIED_PATHS) cpSync(join(CHECKOUT, part), join(checkout, part), { recursive: true });
  chmodSync(checkout, 0o755);
  // Starts many processes first, so that the attacking program gets a high process id. A low id could also be that of a
  // process in the jail.
  const script = `i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i + 1)); done; node "$@"; exit $?`;
  const attackCommand = ['sh', '-c', script, 'sh', '/checkout/tests/attacks/jail-attacks.ts', 'rootless'];
  const containerOptions = [
    '--rm',
    '--interactive',
    '--network',
    'host',
    '--volume',
    `${checkout}:/checkout:ro`,
    '--entrypoint',
    '/usr/bin/tini',
  ];
  const unshareCommand = ['unshare', '--net', '--', 'sh', '-c', NETWORK_SCRIPT, 'sh'];
  const child = startPodman(
    ['run', ...containerOptions, ...PRIVILEGE_OPTIONS, image, '--', ...attackCommand],
    unshareCommand,
  );
  assert.ok(child.stdout && child.stderr);
  const [output, said, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  assert.equal(code, 0, said);
  const outcomes = JSON.parse(output) as Record<string, Outcome>;
  for (const name of Object.keys(ATTACKS))
    await t.test(`in the container, a client of a browser cannot ${name}`, () => {
      const outcome = outcomes[name];
      assert.ok(outcome, 'was not tried');
      assert.equal(outcome.succeeded, false, outcome.seen);
      assert.doesNotMatch(outcome.seen, /NO ANSWER|pipe .*was closed/);
    });
});

test('the container drains its sessions and exits cleanly when it is stopped', async () => {
  const session = await create();
  assert.equal(await markPage(session), 7);
  const told = lines.length;
  await stopContainer(NAME, container);
  assert.equal(container.exitCode, 0);
  const end = lines.slice(told).filter(line => line.includes(session.id));
  assert.ok(
    end.some(line => line.includes('drained')),
    end.join('\n'),
  );
});
