// `berth backup` and `berth restore`, with the commands of docs/guides/upgrade.md: the contents of a restored
// installation, and the archives and folders that are refused.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import type { Context, StorageState } from '../../contract/contexts.ts';
import type { DownloadPage } from '../../contract/files.ts';
import { createContext } from '../harness/contexts.ts';
import { runOnPage } from '../harness/logged-in.ts';
import { openPages } from '../harness/pages.ts';
import { fetchFilm, waitForPlaylist } from '../harness/recordings.ts';
import { CHECKOUT, runBerth, startServer, type TestServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';
import { type ZipEntry, zip } from '../harness/zip.ts';

const REPORT_BYTES = randomBytes(300_000);
const CHURN_ROUNDS_MAX = 200;
const REGULAR_MODE = 0o100644;
const LINK_MODE = 0o120777;

const folder = mkdtempSync(join(tmpdir(), 'berth-backup-'));
const backupFolder = join(folder, 'backups');
const dataDir = join(folder, 'data');
mkdirSync(dataDir, { mode: 0o700 });
const pages = await openPages({
  '/files': '<!doctype html><style>html{background:rgb(0,255,0)}</style><a id=report href=/report>report</a>',
  '/report': (_, response) => {
    const headers = { 'content-type': 'application/pdf', 'content-disposition': 'attachment; filename="report.pdf"' };
    response.writeHead(200, headers).end(REPORT_BYTES);
  },
});
const server = await startServer({ pages, dataDir });
after(() => rmSync(folder, { recursive: true, force: true }));

/** The code blocks of the guide, each as a function that runs the block with the given environment. */
const [backUp, askStatus, stopAndMove, restoreNewest] = [
  ...readFileSync(join(CHECKOUT, 'docs/guides/upgrade.md'), 'utf8').matchAll(/^```sh story\n([\s\S]*?)^```$/gm),
].map(([, block = '']) => async (env: Readonly<Record<string, string>>) => {
  const script = block
    .replaceAll('/var/backups/berth', backupFolder)
    .replaceAll('npm run -s berth --', `'${process.execPath}' '${join(CHECKOUT, 'cli/berth.ts')}'`)
    .replaceAll('./data', dataDir);
  const child = spawn('bash', ['-euo', 'pipefail', '-c', `${script} 2>&1`], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  assert.equal(code, 0, said);
  return said;
});
assert.ok(backUp && askStatus && stopAndMove && restoreNewest);

const restoreInto = (archive: string, into: string) =>
  runBerth(['restore', archive], { ...server.env, BERTH_DATA_DIR: into });
async function stateOf(of: TestServer, id: string): Promise<StorageState> {
  const { status, text: said, body } = await of.api<StorageState>('GET', `/v1/browsers/contexts/${id}/storage-state`);
  assert.equal(status, 200, said);
  return body;
}
const stateWith = (value: string) => ({
  cookies: [
    {
      name: 'sid',
      value,
      domain: 'a.test',
      path: '/',
      expires: 4_000_000_000,
      httpOnly: true,
      secure: true,
      sameSite: 'Lax',
    },
  ],
  origins: [],
});

async function createContextWith(value: string): Promise<string> {
  const { id } = await createContext(server);
  const path = `/v1/browsers/contexts/${id}/storage-state`;
  const { status, text: said } = await server.api('POST', path, { body: stateWith(value) });
  assert.equal(status, 200, said);
  return id;
}

const downloadsOf = async (of: TestServer, session: string) =>
  (await of.api<DownloadPage>('GET', `/v1/browsers/downloads?sessionId=${session}`)).body;

/**
 * Creates and deletes contexts until `done` settles, so that files are written and removed while the backup is made.
 */
async function churn(done: Promise<unknown>): Promise<void> {
  let over = false;
  void done.finally(() => {
    over = true;
  });
  for (let turn = 0; !over && turn < CHURN_ROUNDS_MAX; turn++) {
    const id = await createContextWith(`churn ${turn}`);
    if (turn % 3 === 0) assert.equal((await server.api('DELETE', `/v1/browsers/contexts/${id}`)).status, 204);
  }
}

test('a backup of a running service, restored into an empty folder, contains keys, contexts, downloads and recordings', async () => {
  const context = await createContextWith('kept');
  const session = await server.createSession({});
  await runOnPage(session.connectUrl, async page => {
    await page.goto(`${pages.a}/files`);
    await page.click('#report');
    await eventually(
      'the download',
      () => downloadsOf(server, session.id),
      ({ total }) => total === 1,
    );
    await waitForPlaylist(server, session.id, '0', playlist => playlist.includes('#EXTINF'));
  });
  await server.waitUntilEnded(session.id);
  const film = await fetchFilm(await waitForPlaylist(server, session.id, '0', list => list.includes('ENDLIST')));
  const runningSession = await server.createSession({ keepAlive: true });

  const backupRun = backUp(server.env);
  await churn(backupRun);
  assert.match(
    await backupRun,
    /berth-\d{8}T\d{6}Z\.zip: \d+ files, \d+ bytes\. Keep this archive secret: it contains all secrets/,
  );
  assert.deepEqual(
    readdirSync(dataDir).filter(name => name.startsWith('.')),
    [],
  );
  const laterContext = await createContextWith('made later');
  assert.match(await askStatus(server.env), /service +ready/);

  const [name = ''] = readdirSync(backupFolder);
  assert.equal(statSync(join(backupFolder, name)).mode & 0o777, 0o600);
  await server.kill('SIGTERM');
  assert.match(await stopAndMove(server.env), /Ended 1 sessions/);
  assert.match(await restoreNewest(server.env), /by Berth \d+\.\d+\.\d+\.\nStart the service/);
  for (const [file, mode] of [
    ['master-key', 0o600],
    ['secret', 0o600],
    ['pg', 0o700],
    ['pg/PG_VERSION', 0o600],
  ] as const)
    assert.equal(statSync(join(dataDir, file)).mode & 0o777, mode, file);
  assert.equal(readFileSync(join(dataDir, 'host-id'), 'utf8'), readFileSync(`${dataDir}.upgraded/host-id`, 'utf8'));
  await server.start();

  assert.equal((await stateOf(server, context)).cookies[0]?.value, 'kept');
  assert.equal((await server.api('GET', `/v1/browsers/contexts/${laterContext}`)).status, 404);
  const { downloads } = await downloadsOf(server, session.id);
  const downloadResponse = await fetch(String(downloads[0]?.downloadUrl));
  assert.ok(Buffer.from(await downloadResponse.arrayBuffer()).equals(REPORT_BYTES), 'the bytes of the download');
  const playlistAfter = await waitForPlaylist(server, session.id, '0', list => list.includes('ENDLIST'));
  assert.ok((await fetchFilm(playlistAfter)).equals(film), 'the bytes of the recording');
  const { status, endReason } = await server.read(runningSession.id);
  assert.deepEqual([status, endReason], ['ERROR', 'service_restart']);
  const { body: contexts } = await server.api<Context[]>('GET', '/v1/browsers/contexts');
  for (const { id, version } of contexts)
    if (version > 0) assert.match((await stateOf(server, id)).cookies[0]?.value ?? '', /^(kept|churn \d+)$/);
  assert.equal((await server.createSession()).status, 'RUNNING');
});

test('a backup can be made and restored while the server is stopped, and is refused without an installation, over an existing file or in the data folder', async () => {
  await server.kill('SIGTERM');
  const archive = join(folder, 'stopped.zip');
  const { code, stderr } = await server.berth('backup', archive);
  assert.equal(code, 0, stderr);
  const targetFolder = join(folder, 'second');
  assert.equal((await restoreInto(archive, targetFolder)).code, 0);
  const keys = await runBerth(['keys', 'list', '--json'], { ...server.env, BERTH_DATA_DIR: targetFolder });
  assert.deepEqual(keys.stdout, (await server.berth('keys', 'list', '--json')).stdout);
  const secondBackupResult = await server.berth('backup', archive);
  assert.equal(secondBackupResult.code, 1);
  assert.match(secondBackupResult.stderr, /already exists/);
  const insideBackupResult = await server.berth('backup', join(dataDir, 'b.zip'));
  assert.match(insideBackupResult.stderr, /is in the data folder/);
  const missingInstallationResult = await runBerth(['backup', join(folder, 'none.zip')], {
    ...server.env,
    BERTH_DATA_DIR: join(folder, 'none'),
  });
  assert.equal(missingInstallationResult.code, 1);
  assert.match(missingInstallationResult.stderr, /There is no installation/);
  // The folders of two killed backups.
  for (const name of [`.backup-${randomUUID()}`, `.backup-linking-${randomUUID()}`]) mkdirSync(join(dataDir, name));
  await server.start();
  assert.deepEqual(
    readdirSync(dataDir).filter(name => name.startsWith('.backup')),
    [],
  );
});

test('berth restore refuses a data folder that is not empty, and keeps the contents of the folder', async () => {
  const targetFolder = join(folder, 'used');
  mkdirSync(targetFolder);
  writeFileSync(join(targetFolder, 'mine'), 'mine');
  const { code, stderr } = await restoreInto(backupFolder, targetFolder);
  assert.equal(code, 1);
  assert.match(stderr, /is not empty: it contains mine\. Nothing was changed/);
  assert.deepEqual(readdirSync(targetFolder), ['mine']);
  assert.match((await restoreInto(backupFolder, dataDir)).stderr, /is not empty/);
});

test('berth restore refuses a backup that is truncated or has one changed byte, and restores no files', async () => {
  const [name = ''] = readdirSync(backupFolder);
  const archiveBytes = readFileSync(join(backupFolder, name));
  const damagedFile = join(folder, 'damaged.zip');
  for (const at of [
    0,
    11,
    archiveBytes.length >> 1,
    archiveBytes.length - 1000,
    archiveBytes.length - 70,
    archiveBytes.length - 1,
  ]) {
    const bytes = Buffer.from(archiveBytes);
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
    writeFileSync(damagedFile, bytes);
    const targetFolder = join(folder, 'fresh');
    const { code, stderr } = await restoreInto(damagedFile, targetFolder);
    assert.equal(code, 1, `byte ${at} of ${archiveBytes.length}`);
    assert.match(stderr, /backup is damaged|not a complete backup/);
    assert.throws(() => readdirSync(targetFolder), /ENOENT/);
  }
  writeFileSync(damagedFile, archiveBytes.subarray(0, archiveBytes.length - 10));
  assert.match((await restoreInto(damagedFile, join(folder, 'fresh'))).stderr, /not a complete backup/);
});

// ---- archives written by an attacker, with correct digests ----------------------------------------------------------

const OWNERSHIP = { mode: 0o700, uid: 0, gid: 0 };
const sha256 = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');

function zipWithDigest(entries: readonly ZipEntry[], format = 1): Buffer {
  const bytes = zip(entries.map(entry => ({ mode: REGULAR_MODE, ...entry })));
  const comment = `berth-backup ${format} ${'0'.repeat(64)}`;
  bytes.writeUInt16LE(comment.length, bytes.length - 2);
  const archiveBytes = Buffer.concat([bytes, Buffer.from(comment)]);
  archiveBytes.write(sha256(archiveBytes.subarray(0, -64)), archiveBytes.length - 64);
  return archiveBytes;
}

/** Makes a backup with these entries and a manifest that lists them correctly. */
function forgeBackup(files: readonly ZipEntry[], more: object = {}): Buffer {
  const manifestEntries = files.map(({ name, bytes = '' }) => ({
    ...{ path: name, mode: 0o600, uid: 0, gid: 0, size: bytes.length, sha256: sha256(bytes) },
  }));
  const manifest = {
    ...{ format: 1, version: '0.1.0', createdAt: '2026-01-01T00:00:00.000Z' },
    ...{ database: { kind: 'embedded', major: 18, migration: '0001-first' }, files: 'disk', owner: OWNERSHIP },
    ...{ folders: [{ path: 'pg', ...OWNERSHIP }], entries: manifestEntries, ...more },
  };
  return zipWithDigest([...files, { name: 'manifest.json', bytes: JSON.stringify(manifest) }]);
}

const HOSTILE_ARCHIVES: Readonly<Record<string, Buffer>> = {
  'a path that leaves the folder': forgeBackup([{ name: '../escaped', bytes: 'x' }]),
  'a path that leaves the folder through a subfolder': forgeBackup([{ name: 'pg/../../escaped', bytes: 'x' }]),
  'an absolute path': forgeBackup([{ name: '/tmp/escaped', bytes: 'x' }]),
  'a backslash': forgeBackup([{ name: 'pg\\..\\escaped', bytes: 'x' }]),
  'an unknown file at the top level': forgeBackup([{ name: 'server.json', bytes: '{}' }]),
  'a hidden file': forgeBackup([{ name: 'pg/.hidden', bytes: 'x' }]),
  'a link': forgeBackup([{ name: 'pg/link', bytes: '/etc/passwd', mode: LINK_MODE }]),
  'a folder instead of a file': forgeBackup([{ name: 'secret', bytes: '', mode: 0o040755 }]),
  'the same file twice': forgeBackup([
    { name: 'secret', bytes: 'a' },
    { name: 'secret', bytes: 'a' },
  ]),
  'a folder outside the data folder': forgeBackup([], { folders: [{ path: '../x', ...OWNERSHIP }] }),
  'a file without its folder': forgeBackup([{ name: 'artifacts/x', bytes: 'x' }]),
  'a file below a file': forgeBackup([
    { name: 'secret', bytes: 'a' },
    { name: 'secret/x', bytes: 'a' },
  ]),
  'a file that the manifest does not list': forgeBackup([{ name: 'secret', bytes: 'a' }], { entries: [] }),
  'a missing file': forgeBackup([], { entries: [{ path: 'secret', ...OWNERSHIP, size: 1, sha256: sha256('a') }] }),
  'a digest that differs from the manifest': forgeBackup([{ name: 'secret', bytes: 'a' }], {
    entries: [{ path: 'secret', ...OWNERSHIP, size: 1, sha256: sha256('b') }],
  }),
  'a mode with setuid': forgeBackup([{ name: 'secret', bytes: 'a' }], {
    entries: [{ path: 'secret', mode: 0o4755, uid: 0, gid: 0, size: 1, sha256: sha256('a') }],
  }),
  'a zip bomb that declares a small size': forgeBackup(
    [{ name: 'secret', bytes: Buffer.alloc(50_000_000), size: 10 }],
    {
      entries: [{ path: 'secret', ...OWNERSHIP, size: 10, sha256: sha256('a') }],
    },
  ),
  'no manifest': zipWithDigest([{ name: 'secret', bytes: 'a' }]),
  'a manifest that is not JSON': zipWithDigest([{ name: 'manifest.json', bytes: '{' }]),
};

for (const [what, bytes] of Object.entries(HOSTILE_ARCHIVES))
  test(`berth restore refuses an archive with ${what}, and restores no files`, async () => {
    const parentFolder = join(folder, 'room');
    mkdirSync(parentFolder);
    const archive = join(parentFolder, 'hostile.zip');
    writeFileSync(archive, bytes);
    const { code, stderr } = await restoreInto(archive, join(parentFolder, 'into'));
    assert.equal(code, 1, stderr);
    assert.match(stderr, /The backup is damaged: .*\. Nothing was restored/);
    const remainingPaths = readdirSync(parentFolder, { recursive: true }).map(String);
    assert.deepEqual(
      remainingPaths.filter(name => !/^(hostile\.zip|into|into\/lock)$/.test(name)),
      [],
    );
    rmSync(parentFolder, { recursive: true });
  });

test('berth restore refuses archives from other programs and from newer formats or versions, and reports the reason', async () => {
  const archive = join(folder, 'other.zip');
  const stderrOfRestore = async (bytes: Buffer): Promise<string> => {
    writeFileSync(archive, bytes);
    const { code, stderr } = await restoreInto(archive, join(folder, 'fresh'));
    assert.equal(code, 1);
    return stderr;
  };
  assert.match(await stderrOfRestore(zip([{ name: 'secret', bytes: 'a' }])), /is not a complete backup/);
  assert.match(await stderrOfRestore(Buffer.from('')), /is not a complete backup/);
  assert.match(await stderrOfRestore(zipWithDigest([], 2)), /has the format 2; this program supports formats up to 1/);
  const database = { kind: 'embedded', major: 18, migration: '9999-from-the-future' };
  for (const migration of [database.migration, 'constructor', 'toString'])
    assert.match(
      await stderrOfRestore(forgeBackup([], { database: { ...database, migration } })),
      /newer than this program/,
      migration,
    );
  assert.match(
    await stderrOfRestore(forgeBackup([], { database: { kind: 'elsewhere' } })),
    /Set DATABASE_URL to its value at the time of the backup/,
  );
  assert.match(
    await stderrOfRestore(forgeBackup([], { files: 's3' })),
    /Set BERTH_S3_BUCKET to its value at the time of the backup/,
  );
  const missingBackupResult = await restoreInto(join(folder, 'nothing.zip'), join(folder, 'fresh'));
  assert.equal(missingBackupResult.code, 4);
  renameSync(archive, `${archive}.old`);
});
