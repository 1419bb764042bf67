import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Command } from 'commander';
import { findFolderOwner } from '../server/engines/store/data-folder.ts';
import { writeServerRecord } from '../server/server-record.ts';
import { EXIT } from './exit-codes.ts';
import { berthProgram } from './program.ts';
import { runBerth } from './run.ts';
import { versionText } from './version.ts';

let dataDir: string;

before(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'berth-cli-'));
});
after(() => rmSync(dataDir, { recursive: true }));

interface RunResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function berth(...args: string[]): Promise<RunResult> {
  let stdout = '';
  let stderr = '';
  const code = await runBerth(args, {
    env: { BERTH_DATA_DIR: dataDir },
    print: text => {
      stdout += text;
    },
    say: text => {
      stderr += text;
    },
    input: async () => '',
  });
  return { code, stdout, stderr };
}

test('--version prints the package version and the commit', async () => {
  const { code, stdout } = await berth('--version');
  assert.equal(code, EXIT.done);
  assert.equal(stdout, `${versionText()}\n`);
});

test('every command except serve and mcp accepts --json', () => {
  const leafCommands = (command: Command, path: string): Array<readonly [string, Command]> =>
    command.commands.length === 0
      ? [[path, command]]
      : command.commands.flatMap(one => leafCommands(one, `${path} ${one.name()}`.trim()));
  const commandsWithoutJson = leafCommands(berthProgram(), '').filter(
    ([, { options }]) => !options.some(({ long }) => long === '--json'),
  );
  assert.deepEqual(
    commandsWithoutJson.map(([path]) => path),
    ['serve', 'mcp'],
  );
});

for (const args of [
  ['nonsense'],
  ['keys', 'create', '--nonsense'],
  ['keys', 'create', '--expires', 'soon'],
  ['keys', 'revoke'],
])
  test(`exits with the usage error code for: berth ${args.join(' ')}`, async () => {
    const { code, stdout, stderr } = await berth(...args);
    assert.equal(code, EXIT.usage);
    assert.equal(stdout, '');
    assert.notEqual(stderr, '');
  });

test('openapi prints the document without creating a database', async () => {
  const { code, stdout } = await berth('openapi', '--json');
  assert.equal(code, EXIT.done);
  const document: { openapi: string; paths: Record<string, unknown> } = JSON.parse(stdout);
  assert.match(document.openapi, /^3\.1\./);
  assert.ok('/v1/browsers/sessions' in document.paths);
  assert.ok(!existsSync(join(dataDir, 'pg')));
});

test('creates a key, shows its secret only at creation, and rejects a second revocation', async () => {
  const createResult = await berth(
    'keys',
    'create',
    '--json',
    '--name',
    'nightly',
    '--scope',
    'browsers:read',
    'browsers:write',
  );
  assert.equal(createResult.code, EXIT.done, createResult.stderr);
  assert.equal(createResult.stderr, '');
  const key: { id: string; applicationId: string; key: string } = JSON.parse(createResult.stdout);
  assert.deepEqual(Object.keys(key), ['id', 'applicationId', 'key']);
  assert.match(key.key, /^bak_/);

  const listResult = await berth('keys', 'list', '--json', '--application', key.applicationId);
  assert.doesNotMatch(listResult.stdout, new RegExp(key.key));
  const [row]: Array<{ id: string; name: string; status: string; scopes: string[] }> = JSON.parse(listResult.stdout);
  assert.equal(row?.id, key.id);
  assert.equal(row.name, 'nightly');
  assert.equal(row.status, 'active');
  assert.deepEqual(row.scopes, ['browsers:read', 'browsers:write']);

  const revokeResult = await berth('keys', 'revoke', key.id, '--json');
  assert.deepEqual(JSON.parse(revokeResult.stdout), { id: key.id, applicationId: key.applicationId, revoked: true });
  const secondRevokeResult = await berth('keys', 'revoke', key.id);
  assert.equal(secondRevokeResult.code, EXIT.notFound);
  assert.match((await berth('keys', 'list')).stdout, /revoked/);
});

test('keys create without --json prints only the key to standard output', async () => {
  const { stdout, stderr } = await berth('keys', 'create', '--expires', '2099-01-31');
  assert.match(stdout, /^bak_\S+\n$/);
  assert.match(stderr, /shown only once/);
});

test('rejects an unknown scope and an unknown application', async () => {
  const scopeResult = await berth('keys', 'create', '--scope', 'browsers:everything');
  assert.equal(scopeResult.code, EXIT.usage);
  assert.match(scopeResult.stderr, /browsers:everything.*browsers:read/s);
  const applicationResult = await berth('keys', 'list', '--application', 'no such thing');
  assert.equal(applicationResult.code, EXIT.notFound);
});

test('tokens create --json prints an id and a personal token', async () => {
  const { code, stdout } = await berth('tokens', 'create', '--json');
  assert.equal(code, EXIT.done);
  const token: { id: string; token: string } = JSON.parse(stdout);
  assert.deepEqual(Object.keys(token), ['id', 'token']);
  assert.match(token.token, /^bpt_/);
});

test('closes the database when a command fails while the database is open', async () => {
  const secretFile = join(dataDir, 'secret');
  writeFileSync(secretFile, 'cut off');
  const { code, stderr } = await berth('keys', 'list');
  rmSync(secretFile); // The next command creates a new secret.
  assert.equal(code, EXIT.failed);
  assert.match(stderr, /secret does not contain a secret/);
  assert.equal(await findFolderOwner(dataDir), undefined);
});

test('exits with the usage error code for an invalid setting, and reports the setting', async () => {
  let stderr = '';
  const code = await runBerth(['keys', 'list'], {
    env: { BERTH_DATA_DIR: dataDir, BERTH_SLOTS: 'many' },
    print: () => {},
    say: text => {
      stderr += text;
    },
    input: async () => '',
  });
  assert.equal(code, EXIT.usage);
  assert.match(stderr, /BERTH_SLOTS is "many"/);
});

test('stop succeeds if no server is running, and reports that nothing was stopped', async () => {
  const { code, stdout, stderr } = await berth('stop', '--json');
  assert.equal(code, EXIT.done, stderr);
  assert.deepEqual(JSON.parse(stdout), { stopped: false, ended: [], swept: [] });
});

test('stop terminates the process recorded in the data folder, and removes the session folder that the process left behind', async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  assert.ok(child.pid);
  writeServerRecord(dataDir, { url: 'http://127.0.0.1:1', publicUrl: 'http://127.0.0.1:1' }, child.pid);
  const leftoverId = '01a1fa50-5319-7450-a6b3-c787ada50631';
  mkdirSync(join(dataDir, 'sessions', leftoverId), { recursive: true });
  const exitPromise = once(child, 'exit');
  const { code, stdout, stderr } = await berth('stop', '--json');
  assert.equal(code, EXIT.done, stderr);
  assert.deepEqual(JSON.parse(stdout), { pid: child.pid, stopped: true, ended: [], swept: [leftoverId] });
  assert.deepEqual(await exitPromise, [null, 'SIGTERM']);
  assert.ok(!existsSync(join(dataDir, 'sessions', leftoverId)));
});
