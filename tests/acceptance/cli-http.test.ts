// The berth commands that send HTTP requests, each as a program with its own configuration folder, against a real
// server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import type { DeviceRequest } from '../../contract/device.ts';
import { claimFreePort } from '../harness/free-port.ts';
import { Person } from '../harness/person.ts';
import { CHECKOUT, runBerth, startServer } from '../harness/server.ts';
import { withTimeLimit } from '../harness/until.ts';

const EXIT = { done: 0, usage: 2, notFound: 4, denied: 5, unreachable: 6 } as const;

const server = await startServer();
const { token } = JSON.parse((await server.operate('tokens', 'create', '--json', '--name', 'cli-http')).stdout);

/** A person's machine, which has its own configuration folder and does not have the server's environment. */
class Machine {
  readonly folder = mkdtempSync(join(tmpdir(), 'berth-cli-http-'));
  readonly file = join(this.folder, 'berth/credentials.json');

  readonly env = { PATH: process.env.PATH ?? '', HOME: this.folder, XDG_CONFIG_HOME: this.folder };

  constructor() {
    after(() => rmSync(this.folder, { recursive: true }));
  }

  run(args: readonly string[], { env = {}, input = '' }: { env?: Record<string, string>; input?: string } = {}) {
    return runBerth(args, { ...this.env, ...env }, undefined, input);
  }

  async json<T>(...args: readonly string[]): Promise<T> {
    const { code, stdout, stderr } = await this.run([...args, '--json']);
    assert.equal(code, EXIT.done, stderr);
    return JSON.parse(stdout);
  }

  /** Runs `berth login` until the program shows the code. `ended` resolves after a person has decided. */
  async startDeviceLogin(...more: readonly string[]) {
    const args = [join(CHECKOUT, 'cli/berth.ts'), 'login', '--server', server.url, ...more];
    const child = spawn(process.execPath, args, { env: this.env, stdio: ['ignore', 'pipe', 'pipe'] });
    after(() => child.kill('SIGKILL'));
    const said = { stdout: '', stderr: '' };
    child.stdout.on('data', chunk => {
      said.stdout += chunk;
    });
    const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>(resolve =>
      child.once('close', code => resolve({ code, ...said })),
    );
    const userCode = new Promise<string>(resolve =>
      child.stderr.on('data', chunk => {
        said.stderr += chunk;
        const code = /^ {2}([A-Z0-9]{4}-[A-Z0-9]{4})$/m.exec(said.stderr)?.[1];
        if (code) resolve(code);
      }),
    );
    return { userCode: await withTimeLimit('the code', userCode), ended };
  }

  login(...more: readonly string[]) {
    return this.run(['login', '--server', server.url, '--token-stdin', ...more], { input: `${token}\n` });
  }
}

test('a login with a token stores the token in a file that only its owner can read, and never prints the token', async () => {
  const machine = new Machine();
  const { code, stdout, stderr } = await machine.login('--json');
  assert.equal(code, EXIT.done, stderr);
  assert.deepEqual([JSON.parse(stdout).profile, JSON.parse(stdout).server], ['default', server.url]);
  assert.ok(!`${stdout}${stderr}`.includes(token));
  assert.equal(statSync(machine.file).mode & 0o777, 0o600);
  assert.equal(JSON.parse(readFileSync(machine.file, 'utf8')).profiles.default.token.value, token);
  const who = await machine.json<{ server: string; profile: string; token: { name: string } }>('whoami');
  assert.deepEqual([who.server, who.profile, who.token.name], [server.url, 'default', 'cli-http']);
  const whoamiResult = await machine.run(['whoami']);
  assert.match(whoamiResult.stdout, /agent key +none/);
  assert.ok(!whoamiResult.stdout.includes(token));
  const withKeyResult = await machine.run(['whoami'], { env: { BERTH_KEY: server.key } });
  assert.match(withKeyResult.stdout, /agent key +the one in BERTH_KEY/);
  assert.ok(!withKeyResult.stdout.includes(server.key));
});

test('a person can log in, create a session for a client, release the session and log out', async () => {
  const machine = new Machine();
  await machine.login();
  const app = await machine.json<{ id: string; name: string }>('apps', 'create', 'Shop agent');
  const apps = await machine.json<Array<{ id: string }>>('apps', 'list');
  assert.deepEqual(apps.map(({ id }) => id).sort(), [app.id, server.applicationId].sort());
  assert.match((await machine.run(['apps', 'list'])).stdout, /^ID +NAME[\s\S]*Shop agent +shop-agent +owner/);

  const noKeyResult = await machine.run(['sessions', 'list']);
  assert.equal(noKeyResult.code, EXIT.denied);
  assert.match(noKeyResult.stderr, /no agent key.*keys create --app ID --save.*--key.*BERTH_KEY/);
  const savedKey = await machine.json<{ id: string; saved: boolean }>('keys', 'create', '--app', app.id, '--save');
  assert.deepEqual([Object.keys(savedKey), savedKey.saved], [['id', 'applicationId', 'saved'], true]);

  const metadata = ['--metadata', 'run=r-1', '--metadata', 'of=a=b'];
  const session = await machine.json<{ id: string; connectUrl: string; createdAt: string; userMetadata: object }>(
    ...['sessions', 'create', '--keep-alive', '--timeout', '300', ...metadata],
  );
  assert.deepEqual(session.userMetadata, { run: 'r-1', of: 'a=b' });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  await browser
    .contexts()[0]
    ?.pages()[0]
    ?.evaluate(() => console.log('seen in the log'));
  await browser.close();
  assert.match((await machine.run(['sessions', 'list', '--status', 'RUNNING'])).stdout, new RegExp(session.id));
  assert.match((await machine.run(['sessions', 'get', session.id])).stdout, /status +RUNNING/);
  const releasedSession = await machine.json<{ status: string }>('sessions', 'release', session.id);
  assert.equal(releasedSession.status, 'COMPLETED');
  assert.match((await machine.run(['sessions', 'events', session.id])).stdout, /session\.created[\s\S]*session\.ended/);
  assert.match((await machine.run(['sessions', 'logs', session.id])).stdout, /seen in the log/);
  const of = (...options: string[]) => machine.run(['sessions', 'logs', session.id, ...options]);
  assert.match((await of('--page', '0', '--from', session.createdAt)).stdout, /seen in the log/);
  assert.doesNotMatch((await of('--page', '-1')).stdout, /seen in the log/);
  assert.equal((await of('--to', session.createdAt)).stdout, '');

  const keys = await machine.json<Array<{ id: string; status: string }>>('keys', 'list', '--app', app.id);
  assert.deepEqual(
    keys.map(({ id, status }) => [id, status]),
    [[savedKey.id, 'active']],
  );
  const { key } = JSON.parse(readFileSync(machine.file, 'utf8')).profiles.default;
  const left = await machine.json<{ revoked: string[] }>('logout');
  assert.deepEqual(left.revoked, [savedKey.id]);
  assert.throws(() => statSync(machine.file), { code: 'ENOENT' });
  assert.equal((await server.api('GET', '/v1/browsers/sessions', { key: key.value })).status, 401);
  // The login did not create this token, so the logout does not revoke it.
  assert.equal((await server.api('GET', '/v1/applications', { key: token })).status, 200);
});

test('a login succeeds when a person approves the request, and a logout revokes the token', async () => {
  const ada = await Person.setUpOwner(server);
  const machine = new Machine();
  const { userCode, ended } = await machine.startDeviceLogin('--json');
  const authorizationResponse = await ada.get<DeviceRequest>(`/v1/device/authorizations?user_code=${userCode}`);
  assert.equal(authorizationResponse.status, 200, authorizationResponse.text);
  assert.equal(authorizationResponse.body.client.id, 'berth-cli');
  assert.deepEqual(authorizationResponse.body.scopes.toSorted(), [
    'applications:read',
    'applications:write',
    'keys:write',
  ]);
  const [application] = authorizationResponse.body.applications;
  assert.ok(application);
  const decision = { userCode, decision: 'approve', applicationIds: [application.id] };
  const decisionResponse = await ada.post('/v1/device/approvals', decision);
  assert.equal(decisionResponse.status, 200, decisionResponse.text);
  const { code, stdout, stderr } = await ended;
  assert.equal(code, EXIT.done, stderr);
  const { tokenId, expiresAt }: { tokenId: string; expiresAt: string } = JSON.parse(stdout);
  assert.ok(Date.parse(expiresAt) > Date.now());

  const who = await machine.json<{ token: { id: string; kind: string; applicationIds: string[] } }>('whoami');
  assert.deepEqual([who.token.id, who.token.kind, who.token.applicationIds], [tokenId, 'developer', [application.id]]);
  const key = await machine.json<{ id: string }>('keys', 'create', '--app', application.id, '--save');
  assert.deepEqual(await machine.json('sessions', 'list', '--status', 'RUNNING'), []);
  const { token: own } = JSON.parse(readFileSync(machine.file, 'utf8')).profiles.default;
  const left = await machine.json<{ revoked: string[] }>('logout');
  assert.deepEqual(left.revoked, [key.id, tokenId]);
  assert.equal((await server.api('GET', '/v1/applications', { key: own.value })).status, 401);
});

test('a login fails and leaves no profile if a person denies the request', async () => {
  const ada = new Person(server);
  await ada.signIn('ada@example.com');
  const machine = new Machine();
  const { userCode, ended } = await machine.startDeviceLogin();
  await ada.get(`/v1/device/authorizations?user_code=${userCode}`);
  assert.equal((await ada.post('/v1/device/approvals', { userCode, decision: 'deny' })).status, 200);
  const { code, stderr } = await ended;
  assert.equal(code, EXIT.denied);
  assert.match(stderr, /denied/);
  assert.throws(() => statSync(machine.file), { code: 'ENOENT' });
});

test('commands with a key from an option or from the environment require no login', async () => {
  const machine = new Machine();
  const createResult = await machine.run(['sessions', 'create', '--server', server.url, '--key', server.key]);
  assert.equal(createResult.code, EXIT.done, createResult.stderr);
  assert.match(createResult.stdout, /^ws:\S+\n$/);
  const [, id = ''] = /Session (\S+) is RUNNING/.exec(createResult.stderr) ?? [];
  const env = { BERTH_URL: server.url, BERTH_KEY: server.key };
  assert.equal((await machine.run(['sessions', 'release', id], { env })).code, EXIT.done);
  const secondReleaseResult = await machine.run(['sessions', 'release', id], { env });
  assert.match(secondReleaseResult.stderr, /not running/);
});

test('profiles are kept separate, and the credential of a profile is sent only to its own server', async () => {
  const machine = new Machine();
  await machine.login('--profile', 'work');
  const namelessResult = await machine.run(['whoami', '--server', server.url]);
  assert.equal(namelessResult.code, EXIT.denied, namelessResult.stdout);
  const seenCredentials: Array<string | undefined> = [];
  const otherServer = createServer((request, response) => {
    seenCredentials.push(request.headers.authorization);
    response.writeHead(404).end();
  });
  await new Promise<void>(resolve => otherServer.listen(0, '127.0.0.1', resolve));
  after(() => otherServer.close());
  const address = otherServer.address();
  assert.ok(typeof address === 'object' && address !== null);
  const otherServerResult = await machine.run([
    ...['apps', 'list', '--profile', 'work', '--server', `http://127.0.0.1:${address.port}`],
  ]);
  assert.equal(otherServerResult.code, EXIT.denied);
  assert.match(otherServerResult.stderr, /There is no login for http:\/\/127.0.0.1.*berth login --server/);
  assert.deepEqual(seenCredentials, []);
  const movedProfileResult = await machine.run(['login', '--profile', 'work', '--server', 'https://berth.example']);
  assert.equal(movedProfileResult.code, EXIT.usage);
  assert.match(movedProfileResult.stderr, /is already logged in to .*Log out first/);
  const unknownProfileResult = await machine.run(['apps', 'list', '--profile', 'nobody']);
  assert.equal(unknownProfileResult.code, EXIT.notFound);
  assert.match(unknownProfileResult.stderr, /no profile nobody/);
});

test('error messages state what to do, and each kind of failure has its own exit code', async () => {
  const machine = new Machine();
  const noLoginResult = await machine.run(['apps', 'list', '--server', server.url]);
  assert.equal(noLoginResult.code, EXIT.denied);
  assert.match(noLoginResult.stderr, /no login for .*Run `berth login --server/);
  const wrongTokenResult = await machine.run(['login', '--server', server.url, '--token-stdin'], {
    input: 'bpt_wrong',
  });
  assert.equal(wrongTokenResult.code, EXIT.denied);
  assert.throws(() => statSync(machine.file), { code: 'ENOENT' });
  const emptyTokenResult = await machine.run(['login', '--server', server.url, '--token-stdin']);
  assert.equal(emptyTokenResult.code, EXIT.usage);
  const badAddressResult = await machine.run(['login', '--server', 'berth.example', '--token-stdin'], { input: token });
  assert.equal(badAddressResult.code, EXIT.usage);
  const unreachableResult = await machine.run(
    ['apps', 'list', '--server', `http://127.0.0.1:${await claimFreePort()}`],
    {
      env: { BERTH_TOKEN: token },
    },
  );
  assert.equal(unreachableResult.code, EXIT.unreachable);
  await machine.login();
  const unknownApplicationResult = await machine.run([
    'keys',
    'create',
    '--app',
    '01a1fa50-5319-7450-a6b3-c787ada50631',
  ]);
  assert.equal(unknownApplicationResult.code, EXIT.notFound);
  const invalidTimeoutResult = await machine.run(['sessions', 'create', '--timeout', '1', '--key', server.key]);
  assert.equal(invalidTimeoutResult.code, EXIT.usage);
  assert.match(invalidTimeoutResult.stderr, /timeout/);
  assert.equal((await machine.run(['keys', 'create', '--save'])).code, EXIT.usage);
  assert.equal((await machine.run(['logout', '--profile', 'nobody'])).code, EXIT.notFound);
});

test('ended sessions leave no process, file or unfinished database row behind', () => server.waitUntilSettled());
