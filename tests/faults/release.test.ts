// A release that is built and installed as an operator would do it: its files, its command, and an upgrade to it with
// running sessions.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { chromium } from 'playwright-core';
import { versionText } from '../../cli/version.ts';
import { CdpClient } from '../harness/cdp.ts';
import { createTemporaryFolder, installRelease, makeRelease, runCommand } from '../harness/install-release.ts';
import { openPages } from '../harness/pages.ts';
import { startServer } from '../harness/server.ts';

const folder = createTemporaryFolder();
const tarball = makeRelease(folder);
const prefix = join(folder, 'prefix');
const command = installRelease(tarball, prefix);
const home = join(prefix, 'lib/node_modules/berth');
const pages = await openPages();

const read = (path: string): string => readFileSync(join(home, path), 'utf8');

test('two builds of a release produce the same bytes, and the checksums match', () => {
  const secondTarball = makeRelease(join(folder, 'again'));
  assert.deepEqual(readFileSync(secondTarball), readFileSync(tarball));
  for (const releaseFolder of [folder, join(folder, 'again')])
    assert.match(
      runCommand('sh', ['-c', `cd '${releaseFolder}' && sha256sum --check SHA256SUMS`]),
      /berth-\S+\.tgz: OK\n.*json: OK/,
    );
});

test('a release has compiled files, a lock file and its documents, but no sources or tests', () => {
  const installedPaths = globSync('**/*', { cwd: home, exclude: path => path.startsWith('node_modules') });
  for (const path of ['cli/berth.js', 'server/engines/slots/listener.pl', 'npm-shrinkwrap.json', 'docs/index.md'])
    assert.ok(installedPaths.includes(path), path);
  assert.deepEqual(
    installedPaths.filter(path => /\.tsx?$|\.test\./.test(path)),
    [],
  );
  const { version } = JSON.parse(read('package.json'));
  assert.match(read('CHANGELOG.md'), new RegExp(`^## ${version}( |$)`, 'm'));
});

test('the installed packages match the lock file of the checkout, and the software bill of materials is complete', () => {
  const lockedPackages = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages;
  const pinnedPackages = JSON.parse(read('npm-shrinkwrap.json')).packages;
  const billOfMaterials = JSON.parse(read('parts.cdx.json'));
  assert.deepEqual([billOfMaterials.bomFormat, billOfMaterials.metadata.component.name], ['CycloneDX', 'berth']);
  const listedPurls = new Set<string>(
    billOfMaterials.components.map((part: { purl: string }) => decodeURIComponent(part.purl)),
  );
  // The lock file also lists packages for other platforms, which are not installed.
  const paths = Object.keys(pinnedPackages).filter(path => path !== '' && pinnedPackages[path].os === undefined);
  assert.ok(paths.length > 100, String(paths.length));
  for (const path of paths) {
    const { version, integrity } = pinnedPackages[path];
    assert.deepEqual([version, integrity], [lockedPackages[path]?.version, lockedPackages[path]?.integrity], path);
    assert.equal(JSON.parse(read(join(path, 'package.json'))).version, version, path);
    const name = path.replace(/^.*node_modules\//, '');
    assert.ok(
      listedPurls.has(`pkg:npm/${name}@${version}`),
      `${name} ${version} is not in the software bill of materials`,
    );
  }
  // The console is bundled, so the list also contains the packages of the console.
  assert.ok([...listedPurls].some(purl => purl.startsWith('pkg:npm/react@')));
});

test('the command of a release prints its version and commit', () => {
  const versionOutput = runCommand(command, ['--version']).trim();
  assert.equal(versionOutput.replace(/-changed/, ''), versionText());
});

test('a session that a server of the source tree created continues when the installed release is started, which creates sessions and serves the console and the docs', async () => {
  const installedRelease: { command?: string } = {};
  const server = await startServer({
    pages,
    installedRelease,
    isMeasured: true,
    env: { BERTH_ADOPT_GRACE: '600' },
  });
  const keptSession = await server.createSession({ keepAlive: true });
  const firstClient = await CdpClient.connect(keptSession.connectUrl);
  const page = await firstClient.attachToPage();
  await firstClient.send('Page.navigate', { url: `${pages.a}/next` }, page);
  await firstClient.evaluate('globalThis.kept = 7', page);
  await server.kill('SIGTERM');

  installedRelease.command = command;
  await server.start();
  const { status, expiresAt, connectUrl } = await server.read(keptSession.id);
  assert.deepEqual([status, expiresAt, connectUrl], ['RUNNING', keptSession.expiresAt, keptSession.connectUrl]);
  const secondClient = await CdpClient.connect(keptSession.connectUrl);
  assert.equal(await secondClient.evaluate('globalThis.kept', await secondClient.attachToPage()), 7);
  await secondClient.close();
  await server.release(keptSession.id);

  const session = await server.createSession({ keepAlive: true });
  const browser = await chromium.connectOverCDP(session.connectUrl);
  const firstPage = browser.contexts()[0]?.pages()[0];
  await firstPage?.goto(pages.a);
  assert.equal(await firstPage?.title(), 'Home');
  await browser.close();
  await server.release(session.id);
  for (const path of ['/console', '/docs', '/openapi.yaml'])
    assert.equal((await fetch(server.url + path)).status, 200, path);
  const statusResult = await server.berth('status');
  assert.equal(statusResult.code, 0, statusResult.stderr);
  assert.match((await server.berth('keys', 'create')).stdout, /bak_/);
  await server.waitUntilSettled();
});
