import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { cleanEnvironment, missingDebianPackages, missingNpmPackages } from './setup.mjs';

type Packages = Readonly<Record<string, { version: string; optional?: boolean }>>;

function createCheckout(t: TestContext, lockedPackages: Packages, installedPackages?: Packages): string {
  const root = mkdtempSync(join(tmpdir(), 'berth-setup-'));
  t.after(() => rmSync(root, { recursive: true }));
  writeFileSync(
    join(root, 'package-lock.json'),
    JSON.stringify({ packages: { '': { version: '1.0.0' }, ...lockedPackages } }),
  );
  if (installedPackages === undefined) return root;
  for (const path of Object.keys(installedPackages)) mkdirSync(join(root, path), { recursive: true });
  writeFileSync(join(root, 'node_modules', '.package-lock.json'), JSON.stringify({ packages: installedPackages }));
  return root;
}

const A = 'node_modules/a';
const B = 'node_modules/@scope/b';

test('reports every npm package as missing in a fresh clone', t => {
  assert.deepEqual(missingNpmPackages(createCheckout(t, { [A]: { version: '1.0.0' }, [B]: { version: '2.0.0' } })), [
    'a',
    '@scope/b',
  ]);
});

test('reports no package as missing if every version matches, even without optional packages', t => {
  const lockedPackages = { [A]: { version: '1.0.0' }, [B]: { version: '2.0.0', optional: true } };
  assert.deepEqual(missingNpmPackages(createCheckout(t, lockedPackages, { [A]: { version: '1.0.0' } })), []);
});

test('reports a package as missing if its version differs or its folder was removed by hand', t => {
  const root = createCheckout(
    t,
    { [A]: { version: '1.0.1' }, [B]: { version: '2.0.0' } },
    { [A]: { version: '1.0.0' }, [B]: { version: '2.0.0' } },
  );
  assert.deepEqual(missingNpmPackages(root), ['a']);
  rmSync(join(root, B), { recursive: true });
  assert.deepEqual(missingNpmPackages(root), ['a', '@scope/b']);
});

test('reports a Debian package as missing unless its commands or one of its files exist, or a setting replaces it', () => {
  const packages = [
    { name: 'coreutils', needs: 'x', commands: ['mkfifo', 'timeout'] },
    { name: 'nothing', needs: 'x', commands: ['mkfifo', 'no-such-command-anywhere'] },
    { name: 'folder', needs: 'x', anyFile: ['/no/such/file', '/proc/self/stat'] },
    { name: 'absent', needs: 'x', anyFile: ['/no/such/file'] },
    { name: 'browser', needs: 'x', anyFile: ['/no/such/file'], unlessSet: 'OWN_BROWSER' },
  ];
  const missingNames = (env: Record<string, string>): string[] =>
    missingDebianPackages(packages, env).map(one => one.name);
  assert.deepEqual(missingNames({ OWN_BROWSER: '/opt/browser' }), ['nothing', 'absent']);
  assert.deepEqual(missingNames({}), ['nothing', 'absent', 'browser']);
});

test('a nested npm process gets the npm settings of the user, but not those of the outer script', () => {
  const env = {
    PATH: '/bin',
    INIT_CWD: '/tmp',
    npm_lifecycle_event: 'start',
    npm_package_name: 'berth',
    npm_config_local_prefix: '/tmp',
    npm_config_registry: 'https://registry.test/',
    npm_config_userconfig: '/etc/npmrc',
  };
  assert.deepEqual(Object.keys(cleanEnvironment(env)), ['PATH', 'npm_config_registry', 'npm_config_userconfig']);
});
