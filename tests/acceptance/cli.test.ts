// The berth command with and without a running server: keys, tokens, doctor, invalid settings, a second server, stop.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { expectUpgradeRefusal } from '../harness/cdp.ts';
import { claimFreePort } from '../harness/free-port.ts';
import { findServerLeftovers, findSessionLeftovers } from '../harness/leftovers.ts';
import { runBerth, startServer } from '../harness/server.ts';
import { processesOf } from '../harness/session-processes.ts';
import { eventually } from '../harness/until.ts';

const EXIT = { done: 0, failed: 1, usage: 2, notFound: 4, unreachable: 6 } as const;
const SESSIONS = '/v1/browsers/sessions';

const server = await startServer();

test('keys create --json prints id, applicationId and key, and the key works immediately', async () => {
  const { code, stdout, stderr } = await server.berth('keys', 'create', '--json', '--name', 'beside');
  assert.equal(code, EXIT.done, stderr);
  assert.equal(stderr, '');
  const createdKey: { id: string; applicationId: string; key: string } = JSON.parse(stdout);
  assert.deepEqual(Object.keys(createdKey), ['id', 'applicationId', 'key']);
  assert.equal(createdKey.applicationId, server.applicationId);
  assert.equal((await server.api('GET', SESSIONS, { key: createdKey.key })).status, 200);
});

test('keys create without --json prints only the key', async () => {
  const { stdout } = await server.berth('keys', 'create', '--application', 'Default');
  assert.match(stdout, /^bak_\S+\n$/);
  assert.equal((await server.api('GET', SESSIONS, { key: stdout.trim() })).status, 200);
});

test('a key that was revoked on the command line is refused over HTTP and CDP', async () => {
  const { id, key } = JSON.parse((await server.berth('keys', 'create', '--json')).stdout);
  const session = await server.createSession({ keepAlive: true }, key);
  const { code, stdout } = await server.berth('keys', 'revoke', id, '--json');
  assert.equal(code, EXIT.done);
  assert.deepEqual(JSON.parse(stdout), { id, applicationId: server.applicationId, revoked: true });
  // The database notifies the server shortly after the command has ended.
  const readStatus = async (): Promise<number> => (await server.api('GET', SESSIONS, { key })).status;
  await eventually('the key to be refused', readStatus, status => status === 401);
  const address = session.connectUrl.replace(/\?.*/, '');
  assert.equal((await expectUpgradeRefusal(address, { authorization: `Bearer ${key}` })).status, 401);
  await server.release(session.id);
});

test('keys list shows active and revoked keys, without their secrets', async () => {
  const { code, stdout } = await server.berth('keys', 'list', '--json');
  assert.equal(code, EXIT.done);
  const keys: Array<{ name: string; status: string }> = JSON.parse(stdout);
  assert.ok(keys.some(({ name }) => name === 'beside'));
  assert.ok(keys.some(({ status }) => status === 'revoked'));
  assert.doesNotMatch(stdout, /bak_[\w-]{40}/);
});

test('a token created on the command line can be used for account operations', async () => {
  const { code, stdout } = await server.berth('tokens', 'create', '--json', '--scope', 'applications:read');
  assert.equal(code, EXIT.done);
  const { token } = JSON.parse(stdout);
  assert.equal((await server.api('GET', '/v1/applications', { key: token })).status, 200);
});

test('tokens list shows tokens without their secrets, and the server refuses a token that was revoked on the command line', async () => {
  const { id, token } = JSON.parse((await server.berth('tokens', 'create', '--json', '--name', 'nightly')).stdout);
  const readTokenStatus = async (): Promise<string | undefined> => {
    const { stdout } = await server.berth('tokens', 'list', '--json');
    assert.ok(!stdout.includes(token));
    const tokens: Array<{ id: string; name: string; status: string }> = JSON.parse(stdout);
    return tokens.find(one => one.id === id && one.name === 'nightly')?.status;
  };
  assert.equal(await readTokenStatus(), 'active');
  assert.equal((await server.berth('tokens', 'revoke', id)).code, EXIT.done);
  assert.notEqual(await readTokenStatus(), 'active');
  await eventually(
    'the server to refuse the revoked token',
    async () => (await server.api('GET', '/v1/applications', { key: token })).status,
    status => status === 401,
  );
  assert.equal((await server.berth('tokens', 'revoke', crypto.randomUUID())).code, EXIT.notFound);
});

test('a command reports all invalid settings, and exits with the usage error code', async () => {
  const { code, stderr } = await runBerth(['keys', 'list'], { ...server.env, BERTH_SLOT: '4', BERTH_WARM: 'x' });
  assert.equal(code, EXIT.usage);
  assert.match(stderr, /BERTH_SLOT is not a setting; did you mean BERTH_SLOTS/);
  assert.match(stderr, /BERTH_WARM is "x"/);
});

test('status reports the state of the service, and succeeds if the service is ready', async () => {
  const session = await server.createSession({ keepAlive: true });
  const { code, stdout, stderr } = await server.berth('status', '--json');
  assert.equal(code, EXIT.done, stderr);
  const { running, ready, url, sessions, checks } = JSON.parse(stdout);
  assert.deepEqual([running, ready, url, sessions.running], [true, true, server.url, 1]);
  assert.ok(checks.some(({ name, ok }: { name: string; ok: boolean }) => name === 'database' && ok));
  const otherAddressResult = await runBerth(['status', '--json'], { ...server.env, BERTH_LISTEN: '127.0.0.1:1' });
  assert.equal(
    JSON.parse(otherAddressResult.stdout).url,
    server.url,
    'the address comes from the record of the running server',
  );
  const textResult = await server.berth('status');
  assert.match(textResult.stdout, /^service +ready, version \d+\.\d+\.\d+, process \d+\n/);
  assert.match(textResult.stdout, /\nsessions +1 running, 0 starting, of \d+ slots; 0 clients\n/);
  await server.release(session.id);
});

test('status fails if no server uses the data folder, and names the folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-status-'));
  try {
    const { code, stderr } = await runBerth(['status'], { ...server.env, BERTH_DATA_DIR: folder });
    assert.equal(code, EXIT.unreachable);
    assert.match(stderr, /no server that uses the data folder .*berth-status-/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('config check reports every invalid and unknown setting, and prints no secret', async () => {
  const good = await server.berth('config', 'check', '--json');
  assert.equal(good.code, EXIT.done, good.stderr);
  assert.equal(JSON.parse(good.stdout).ok, true);
  const secret = 'a-secret-that-is-long-enough-for-the-service';
  const bad = { ...server.env, BERTH_SLOTS: 'many', BERTH_SLOT: '4', BERTH_SECRET: secret };
  const { code, stdout, stderr } = await runBerth(['config', 'check'], bad);
  assert.equal(code, EXIT.usage);
  assert.match(stderr, /BERTH_SLOTS/);
  assert.match(stderr, /BERTH_SLOT\b.*BERTH_SLOTS/);
  assert.doesNotMatch(stdout + stderr, new RegExp(secret));
});

test('doctor lists all requirements, and reports no missing requirement on a suitable machine', async () => {
  const { code, stdout, stderr } = await server.berth('doctor', '--json');
  assert.equal(code, EXIT.done, stderr + stdout);
  const { ok, findings } = JSON.parse(stdout);
  assert.equal(ok, true);
  assert.ok(findings.length > 8);
  for (const finding of findings) {
    assert.deepEqual(Object.keys(finding).sort(), ['cure', 'detail', 'name', 'ok', 'required']);
    assert.ok(finding.ok || finding.cure.length > 10, `${finding.name} failed and names no cure`);
  }
  const textResult = await server.berth('doctor');
  assert.equal(
    textResult.stdout.split('\n').filter(line => line.startsWith('ok')).length,
    findings.filter((one: { ok: boolean }) => one.ok).length,
  );
});

test('berth doctor fails if Chromium is missing, and names Chromium in its finding', async () => {
  const { code, stdout } = await runBerth(['doctor', '--json'], { ...server.env, BERTH_CHROMIUM: '/no/such/chromium' });
  assert.equal(code, 3);
  const { ok, findings } = JSON.parse(stdout);
  assert.equal(ok, false);
  const missingFinding = findings.find((one: { name: string; ok: boolean }) => !one.ok && /chromium/i.test(one.name));
  assert.match(missingFinding.detail + missingFinding.cure, /chromium/i);
});

test('openapi prints the document that the server serves', async () => {
  const { code, stdout } = await server.berth('openapi');
  assert.equal(code, EXIT.done);
  assert.deepEqual(parse(stdout), (await server.api('GET', '/v1/browsers/openapi.json')).body);
});

for (const [name, value] of [
  ['BERTH_LISTEN', 'everywhere'],
  ['BERTH_PUBLIC_URL', 'ftp://berth.test'],
  ['DATABASE_URL', 'mysql://user:pass@host/db'],
  ['BERTH_SLOTS', 'many'],
  ['BERTH_ISOLATION', 'none'],
  ['BERTH_EGRESS_ALLOW', 'all'],
  ['BERTH_EGRESS_HOSTS', 'a.test'],
  ['BERTH_COMPAT', 'yes'],
  ['BERTH_LOG_LEVEL', 'loud'],
  ['BERTH_SECRET', 'short'],
  ['BERTH_REGION', 'us west'],
  ['BERTH_DISCONNECT_GRACE', '2s'],
  ['BERTH_ADOPT_GRACE', '-1'],
  ['BERTH_SESSION_MEMORY', '1'],
  ['BERTH_SESSION_DISK', '8 GB'],
  ['BERTH_SESSION_PIDS', '10'],
  ['BERTH_SESSION_CPUS', '0'],
  ['BERTH_TLS_CERT', '/cert/without/key.pem'],
  ['BERTH_S3_BUCKET', 'Not_A_Bucket'],
  ['BERTH_S3_ENDPOINT', 's3.example'],
  ['BERTH_S3_ACCESS_KEY', 'without-its-secret'],
  ['BERTH_S3_PATH_STYLE', 'maybe'],
] as const)
  test(`the server reports an invalid setting and does not start: ${name}=${value}`, async () => {
    const { code, stderr } = await runBerth(['serve'], { ...server.env, [name]: value });
    assert.equal(code, EXIT.usage, stderr);
    assert.match(stderr, new RegExp(name));
    assert.doesNotMatch(stderr, /pass@|\n\s+at /, 'no password and no stack');
  });

test('a second server on the same data folder is refused, and the first server keeps running', async () => {
  const { code, stderr } = await runBerth(['serve'], {
    ...server.env,
    BERTH_LISTEN: `127.0.0.1:${await claimFreePort()}`,
  });
  assert.equal(code, EXIT.failed);
  assert.match(stderr, /data folder|in use/);
  assert.ok(stderr.includes(server.dataDir), stderr);
  assert.match(stderr, new RegExp(`\\b${server.pid}\\b`), 'the error names the process that uses the folder');
  assert.equal((await server.fetchFromOperator('/readyz')).status, 200);
});

test('a server reports the reason and exits if its port is in use or Chromium is missing, and leaves no process running', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-aside-'));
  const env = { ...server.env, BERTH_DATA_DIR: join(folder, 'data') };
  const samePortResult = await runBerth(['serve'], env);
  assert.equal(samePortResult.code, EXIT.failed);
  assert.match(samePortResult.stderr, /in use/);
  assert.match(samePortResult.stderr, /BERTH_LISTEN\.\n/);
  assert.doesNotMatch(samePortResult.stderr, /EADDRINUSE/, 'it is said once, in plain words');
  const listen = { BERTH_LISTEN: `127.0.0.1:${await claimFreePort()}` };
  const operatorListen = { BERTH_OPERATOR_LISTEN: new URL(server.operatorUrl).host };
  const sameOperatorPortResult = await runBerth(['serve'], { ...env, ...listen, ...operatorListen });
  assert.equal(sameOperatorPortResult.code, EXIT.failed);
  assert.match(sameOperatorPortResult.stderr, /in use by another program.*BERTH_OPERATOR_LISTEN/);
  assert.doesNotMatch(sameOperatorPortResult.stderr, /bak_|bpt_/);
  const noChromiumResult = await runBerth(['serve'], { ...env, ...listen, BERTH_CHROMIUM: '/no/such/chromium' });
  assert.equal(noChromiumResult.code, EXIT.failed);
  assert.match(noChromiumResult.stderr, /\/no\/such\/chromium/);
  assert.match(noChromiumResult.stderr, /BERTH_CHROMIUM|install/i);
  await eventually(
    'all processes to have ended',
    () => findServerLeftovers(env.BERTH_DATA_DIR),
    left => left.length === 0,
  );
  // The failed starts printed no key. The first successful start prints the key.
  const firstServer = await startServer({ dataDir: env.BERTH_DATA_DIR });
  assert.match(firstServer.key, /^bak_/);
  await firstServer.close();
  const secondResult = await runBerth(['serve'], { ...env, ...listen, BERTH_CHROMIUM: '/no/such/chromium' });
  assert.equal(secondResult.code, EXIT.failed);
  rmSync(folder, { recursive: true });
});

test('with stop --drain, the server ends its sessions before it exits', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const { code, stdout, stderr } = await server.berth('stop', '--drain', '--json');
  assert.equal(code, EXIT.done, stderr);
  const { stopped, ended, swept } = JSON.parse(stdout);
  assert.deepEqual({ stopped, ended, swept }, { stopped: true, ended: [], swept: [] });
  await server.start();
  const session = await server.read(id);
  assert.deepEqual([session.status, session.endReason], ['COMPLETED', 'drained']);
});

test('stop without --drain stops the server and then the browsers that the server left running', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  const { code, stdout, stderr } = await server.berth('stop');
  assert.equal(code, EXIT.done, stderr);
  assert.match(stdout, /has stopped/);
  assert.ok(stdout.includes(id));
  const secondStopResult = await server.berth('stop');
  assert.equal(secondStopResult.code, EXIT.done);
  assert.match(secondStopResult.stdout, /No server was running/);
  await server.start();
  const session = await server.read(id);
  assert.deepEqual([session.status, session.endReason], ['COMPLETED', 'operator']);
  await server.waitUntilSettled();
});

test('berth stop ends the browsers that remain after the server was killed with SIGKILL', async () => {
  const { id } = await server.createSession({ keepAlive: true });
  await server.kill('SIGKILL');
  assert.notDeepEqual(processesOf(id), [], 'the browser is still running');
  const { code, stdout, stderr } = await server.berth('stop', '--json');
  assert.equal(code, EXIT.done, stderr);
  const { stopped, ended } = JSON.parse(stdout);
  assert.deepEqual({ stopped, ended }, { stopped: false, ended: [id] });
  // The kernel may list a killed process for a moment longer; everything else is already removed.
  const [processes, others] = [/^process /, /^(?!process )/].map(
    kind => () => findSessionLeftovers(server.dataDir).filter(left => kind.test(left)),
  );
  assert.deepEqual(others?.(), []);
  await eventually(
    'the processes to be gone',
    () => processes?.(),
    left => left?.length === 0,
  );
  await server.start();
  assert.ok((await server.read(id)).endedAt);
  await server.waitUntilSettled();
});
