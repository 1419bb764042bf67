// An upgrade from an older program: sessions that a checkout of the day before started go on in this one, with the database
// that it wrote. A clone without history fails, because it has no older program.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CdpClient } from '../harness/cdp.ts';
import { run, temporaryFolder } from '../harness/install-release.ts';
import { openPages } from '../harness/pages.ts';
import { CHECKOUT, startServer } from '../harness/server.ts';

const DAY_SECONDS = 86_400;

/** The newest commit that is a day older than this one. Undefined in a clone that does not reach so far. */
function commitOfTheDayBefore(): string | undefined {
  const now = Number(run('git', ['-C', CHECKOUT, 'log', '-1', '--format=%ct']));
  const id = run('git', ['-C', CHECKOUT, 'log', '-1', '--format=%H', `--before=${now - DAY_SECONDS}`]).trim();
  return id === '' ? undefined : id;
}

/** The files of the commit with their own packages. */
function unpack(commit: string, folder: string): string {
  mkdirSync(folder);
  run('sh', ['-c', 'git -C "$1" archive "$2" | tar -x -C "$3"', 'sh', CHECKOUT, commit, folder]);
  run('npm', [
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

test('sessions of the program of the day before go on in this one', async () => {
  const commit = commitOfTheDayBefore();
  assert.ok(commit, 'this clone has no commit of the day before: git fetch --unshallow');
  const folder = temporaryFolder();
  const pages = await openPages();
  const installed: { command?: string } = { command: unpack(commit, join(folder, 'before')) };
  const dataDir = join(folder, 'data');
  const server = await startServer({ pages, installed, dataDir, isMeasured: true, env: { BERTH_ADOPT_GRACE: '600' } });
  const session = await server.createSession({ keepAlive: true });
  const before = await CdpClient.connect(session.connectUrl);
  const page = await before.attachToPage();
  await before.send('Page.navigate', { url: `${pages.a}/next` }, page);
  await before.evaluate('globalThis.kept = 7', page);
  await server.kill('SIGTERM');

  delete installed.command;
  await server.start();
  const { status, expiresAt, connectUrl } = await server.read(session.id);
  assert.deepEqual([status, expiresAt, connectUrl], ['RUNNING', session.expiresAt, session.connectUrl]);
  const after = await CdpClient.connect(session.connectUrl);
  assert.equal(await after.evaluate('globalThis.kept', await after.attachToPage()), 7);
  await after.close();
  await server.release(session.id);
  const another = await server.createSession({ keepAlive: true });
  await server.release(another.id);
  await server.settles();
});
