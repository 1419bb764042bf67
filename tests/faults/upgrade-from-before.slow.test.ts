// An upgrade from an older version: sessions started by a checkout from the day before continue in the current
// checkout, with the database that the older version wrote. Also upgrades the hosts of a fleet one after another. Fails
// in a clone without history, which contains no older version.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CdpClient } from '../harness/cdp.ts';
import { addressAt, startFleet } from '../harness/fleet.ts';
import { createTemporaryFolder, runCommand } from '../harness/install-release.ts';
import { openPages } from '../harness/pages.ts';
import { CHECKOUT, type CreatedSession, startServer } from '../harness/server.ts';

const DAY_SECONDS = 86_400;

/**
 * The newest commit that is at least a day older than the current one. Undefined in a clone whose history is too short.
 */
function commitOfPreviousDay(): string | undefined {
  const now = Number(runCommand('git', ['-C', CHECKOUT, 'log', '-1', '--format=%ct']));
  const id = runCommand('git', ['-C', CHECKOUT, 'log', '-1', '--format=%H', `--before=${now - DAY_SECONDS}`]).trim();
  return id === '' ? undefined : id;
}

/** The commit before the newest change of the schema. A database that it creates has the previous schema version. */
function commitOfPreviousSchema(): string {
  const migrations = ['--', 'server/engines/store/migrations/index.ts'];
  const newest = runCommand('git', ['-C', CHECKOUT, 'log', '-1', '--format=%H', ...migrations]).trim();
  return runCommand('git', ['-C', CHECKOUT, 'rev-parse', `${newest}^`]).trim();
}

/** Unpacks the files of the commit and installs their packages. Returns the path of the program. */
function installCommit(commit: string, folder: string): string {
  mkdirSync(folder);
  runCommand('sh', ['-c', 'git -C "$1" archive "$2" | tar -x -C "$3"', 'sh', CHECKOUT, commit, folder]);
  runCommand('npm', [
    'ci',
    '--prefix',
    folder,
    '--omit=dev',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ]);
  return join(folder, 'cli/berth.ts');
}

test('sessions that were started by the version of the previous day continue in the current version', async () => {
  const commit = commitOfPreviousDay();
  assert.ok(commit, 'this clone has no commit of the day before: git fetch --unshallow');
  const folder = createTemporaryFolder();
  const pages = await openPages();
  const installedRelease: { command?: string } = { command: installCommit(commit, join(folder, 'before')) };
  const dataDir = join(folder, 'data');
  const server = await startServer({
    pages,
    installedRelease,
    dataDir,
    isMeasured: true,
    env: { BERTH_ADOPT_GRACE: '600' },
  });
  const session = await server.createSession({ keepAlive: true });
  const firstClient = await CdpClient.connect(session.connectUrl);
  const page = await firstClient.attachToPage();
  await firstClient.send('Page.navigate', { url: `${pages.a}/next` }, page);
  await firstClient.evaluate('globalThis.kept = 7', page);
  await server.kill('SIGTERM');

  delete installedRelease.command;
  await server.start();
  const { status, expiresAt, connectUrl } = await server.read(session.id);
  assert.deepEqual([status, expiresAt, connectUrl], ['RUNNING', session.expiresAt, session.connectUrl]);
  const secondClient = await CdpClient.connect(session.connectUrl);
  assert.equal(await secondClient.evaluate('globalThis.kept', await secondClient.attachToPage()), 7);
  await secondClient.close();
  await server.release(session.id);
  const newSession = await server.createSession({ keepAlive: true });
  await server.release(newSession.id);
  await server.waitUntilSettled();
});

test('hosts of two versions work side by side, and sessions keep running when the older host is upgraded', async () => {
  const folder = createTemporaryFolder();
  const pages = await openPages();
  const installed: { command?: string } = { command: installCommit(commitOfPreviousSchema(), join(folder, 'before')) };
  const fleet = await startFleet({ pages, installed, env: { BERTH_ADOPT_GRACE: '600', BERTH_HOST_RESTART: '600' } });
  const [olderHost, newerHost] = fleet.hosts;
  const sessions: CreatedSession[] = [];
  for (const host of [olderHost, newerHost, newerHost, olderHost])
    sessions.push(await host.createSession({ keepAlive: true }));
  for (const host of fleet.hosts) assert.ok(sessions.some(({ id }) => host.boxOf(id) !== undefined));
  for (const host of fleet.hosts)
    for (const { id, connectUrl } of sessions) {
      assert.equal((await host.read(id)).status, 'RUNNING');
      const client = await CdpClient.connect(addressAt(host, connectUrl));
      await client.evaluate('globalThis.kept = 7', await client.attachToPage());
      await client.close();
      const debugResponse = await host.api('GET', `/v1/browsers/sessions/${id}/debug`);
      assert.equal(debugResponse.status, 200, debugResponse.text);
    }

  assert.equal(await olderHost.kill('SIGTERM'), 0);
  delete installed.command;
  await olderHost.start();
  for (const host of fleet.hosts)
    for (const { id, connectUrl } of sessions) {
      assert.equal((await host.read(id)).status, 'RUNNING');
      const client = await CdpClient.connect(addressAt(host, connectUrl));
      assert.equal(await client.evaluate('globalThis.kept', await client.attachToPage()), 7);
      await client.close();
    }
  for (const { id } of sessions) assert.equal((await newerHost.release(id)).status, 'COMPLETED');
  await Promise.all([olderHost.waitUntilSettled(), newerHost.waitUntilSettled()]);
});
