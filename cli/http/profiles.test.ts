import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { CommandFailed } from '../command-failed.ts';
import type { Terminal } from '../terminal.ts';
import { credentialsFile, type Profile, readProfile, writeProfile } from './profiles.ts';

const HOME_PROFILE: Profile = {
  server: 'http://127.0.0.1:8080',
  token: { id: 't', value: 'bdt_x', isOwn: true },
};

function createTerminal(t: TestContext): Terminal {
  const folder = mkdtempSync(join(tmpdir(), 'berth-profiles-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return { env: { XDG_CONFIG_HOME: folder }, print: () => {}, say: () => {}, input: async () => '' };
}

test('stores all profiles in one file, and restricts the file to its owner on each write', t => {
  const terminal = createTerminal(t);
  const file = credentialsFile(terminal);
  assert.equal(readProfile(terminal, 'home'), undefined);
  writeProfile(terminal, 'home', HOME_PROFILE);
  chmodSync(file, 0o644);
  writeProfile(terminal, 'work', { server: 'https://berth.example' });
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(readProfile(terminal, 'home'), HOME_PROFILE);
  assert.deepEqual(readProfile(terminal, 'work'), { server: 'https://berth.example' });
  assert.equal(readProfile(terminal, 'toString'), undefined);
  assert.deepEqual(readdirSync(dirname(file)), ['credentials.json']);
});

test('deletes the file when the last profile is removed', t => {
  const terminal = createTerminal(t);
  writeProfile(terminal, 'home', HOME_PROFILE);
  writeProfile(terminal, 'home', undefined);
  assert.ok(!existsSync(credentialsFile(terminal)));
});

test('reports the path of a credentials file that cannot be used', t => {
  const terminal = createTerminal(t);
  const file = credentialsFile(terminal);
  writeProfile(terminal, 'home', HOME_PROFILE);
  for (const text of ['{', '{"version":2,"profiles":{}}']) {
    writeFileSync(file, text);
    assert.throws(
      () => readProfile(terminal, 'home'),
      (error: Error) => error instanceof CommandFailed && error.message.startsWith(file),
    );
  }
  rmSync(dirname(file), { recursive: true });
  writeFileSync(dirname(file), 'a file where the folder should be');
  assert.throws(() => writeProfile(terminal, 'home', HOME_PROFILE), CommandFailed);
});

test('ignores a relative XDG_CONFIG_HOME, as the XDG specification requires', () => {
  const at = (env: Terminal['env']) => credentialsFile({ env, print: () => {}, say: () => {}, input: async () => '' });
  assert.equal(at({ XDG_CONFIG_HOME: 'here', HOME: '/people/ada' }), '/people/ada/.config/berth/credentials.json');
  assert.equal(at({ HOME: '/people/ada' }), '/people/ada/.config/berth/credentials.json');
});
