import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Command } from 'commander';
import { folderOwner } from '../server/engines/store/data-folder.ts';
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

interface Ran {
  readonly code: number;
  readonly printed: string;
  readonly said: string;
}

async function berth(...args: string[]): Promise<Ran> {
  let printed = '';
  let said = '';
  const code = await runBerth(args, {
    env: { BERTH_DATA_DIR: dataDir },
    print: text => {
      printed += text;
    },
    say: text => {
      said += text;
    },
    input: async () => '',
  });
  return { code, printed, said };
}

test('--version prints the package version and the commit', async () => {
  const { code, printed } = await berth('--version');
  assert.equal(code, EXIT.done);
  assert.equal(printed, `${versionText()}\n`);
});

test('every command except serve and mcp accepts --json', () => {
  const leaves = (command: Command, path: string): Array<readonly [string, Command]> =>
    command.commands.length === 0
      ? [[path, command]]
      : command.commands.flatMap(one => leaves(one, `${path} ${one.name()}`.trim()));
  const without = leaves(berthProgram(), '').filter(
    ([, { options }]) => !options.some(({ long }) => long === '--json'),
  );
  assert.deepEqual(
    without.map(([path]) => path),
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
    const { code, printed, said } = await berth(...args);
    assert.equal(code, EXIT.usage);
    assert.equal(printed, '');
    assert.notEqual(said, '');
  });

test('openapi does not create a data folder', async () => {
  const { code, printed } = await berth('openapi', '--json');
  assert.equal(code, EXIT.done);
  const document: { openapi: string; paths: Record<string, unknown> } = JSON.parse(printed);
  assert.match(document.openapi, /^3\.1\./);
  assert.ok('/v1/browsers/sessions' in document.paths);
  assert.ok(!existsSync(join(dataDir, 'pg')));
});

test('creates a key, shows its secret only at creation, and rejects a second revocation', async () => {
  const made = await berth(
    'keys',
    'create',
    '--json',
    '--name',
    'nightly',
    '--scope',
    'browsers:read',
    'browsers:write',
  );
  assert.equal(made.code, EXIT.done, made.said);
  assert.equal(made.said, '');
  const key: { id: string; applicationId: string; key: string } = JSON.parse(made.printed);
  assert.deepEqual(Object.keys(key), ['id', 'applicationId', 'key']);
  assert.match(key.key, /^bak_/);

  const listed = await berth('keys', 'list', '--json', '--application', key.applicationId);
  assert.doesNotMatch(listed.printed, new RegExp(key.key));
  const [row]: Array<{ id: string; name: string; status: string; scopes: string[] }> = JSON.parse(listed.printed);
  assert.equal(row?.id, key.id);
  assert.equal(row.name, 'nightly');
  assert.equal(row.status, 'active');
  assert.deepEqual(row.scopes, ['browsers:read', 'browsers:write']);

  const revoked = await berth('keys', 'revoke', key.id, '--json');
  assert.deepEqual(JSON.parse(revoked.printed), { id: key.id, applicationId: key.applicationId, revoked: true });
  const again = await berth('keys', 'revoke', key.id);
  assert.equal(again.code, EXIT.notFound);
  assert.match((await berth('keys', 'list')).printed, /revoked/);
});

test('prints only the key to standard output without --json', async () => {
  const { printed, said } = await berth('keys', 'create', '--expires', '2099-01-31');
  assert.match(printed, /^bak_\S+\n$/);
  assert.match(said, /shown only once/);
});

test('rejects an unknown scope and an unknown application', async () => {
  const scope = await berth('keys', 'create', '--scope', 'browsers:everything');
  assert.equal(scope.code, EXIT.usage);
  assert.match(scope.said, /browsers:everything.*browsers:read/s);
  const application = await berth('keys', 'list', '--application', 'no such thing');
  assert.equal(application.code, EXIT.notFound);
});

test('creates a token', async () => {
  const { code, printed } = await berth('tokens', 'create', '--json');
  assert.equal(code, EXIT.done);
  const token: { id: string; token: string } = JSON.parse(printed);
  assert.deepEqual(Object.keys(token), ['id', 'token']);
  assert.match(token.token, /^bpt_/);
});

test('a command that fails after it has opened the database closes the database', async () => {
  const secret = join(dataDir, 'secret');
  writeFileSync(secret, 'cut off');
  const { code, said } = await berth('keys', 'list');
  rmSync(secret); // The next command creates a new secret.
  assert.equal(code, EXIT.failed);
  assert.match(said, /secret does not contain a secret/);
  assert.equal(await folderOwner(dataDir), undefined);
});

test('exits with the usage error code for an invalid setting, and reports the setting', async () => {
  let said = '';
  const code = await runBerth(['keys', 'list'], {
    env: { BERTH_DATA_DIR: dataDir, BERTH_SLOTS: 'many' },
    print: () => {},
    say: text => {
      said += text;
    },
    input: async () => '',
  });
  assert.equal(code, EXIT.usage);
  assert.match(said, /BERTH_SLOTS is "many"/);
});

test('stop succeeds if no server is running, and reports that nothing was stopped', async () => {
  const { code, printed, said } = await berth('stop', '--json');
  assert.equal(code, EXIT.done, said);
  assert.deepEqual(JSON.parse(printed), { stopped: false, ended: [], swept: [] });
});

test('stop terminates the process recorded in the data folder, and removes the session folder that the process left behind', async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  assert.ok(child.pid);
  writeServerRecord(dataDir, { url: 'http://127.0.0.1:1', publicUrl: 'http://127.0.0.1:1' }, child.pid);
  const left = '01a1fa50-5319-7450-a6b3-c787ada50631';
  mkdirSync(join(dataDir, 'sessions', left), { recursive: true });
  const exited = once(child, 'exit');
  const { code, printed, said } = await berth('stop', '--json');
  assert.equal(code, EXIT.done, said);
  assert.deepEqual(JSON.parse(printed), { pid: child.pid, stopped: true, ended: [], swept: [left] });
  assert.deepEqual(await exited, [null, 'SIGTERM']);
  assert.ok(!existsSync(join(dataDir, 'sessions', left)));
});
