// The container image of deploy/Dockerfile, built and run with podman without an image registry. Its base is a Debian
// root made by mmdebstrap. The base is kept in podman's storage between runs, and everything else is removed at the
// end.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { CHECKOUT } from './server.ts';

const BASE = 'localhost/berth-test-base';
const IMAGE = `localhost/berth-test-${process.pid}`;
const BUILD_TIMEOUT_MS = 1_200_000;
/**
 * The packages that the Dockerfile installs. The base contains them, so the install step of the Dockerfile finds them
 * all installed.
 */
const PACKAGES =
  'ca-certificates,chromium,ffmpeg,bubblewrap,iproute2,perl-base,libnss3-tools,util-linux,mount,coreutils,tini,fonts-liberation,fonts-noto-core,fonts-noto-color-emoji';
const APT_SOURCE_PATHS = ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list'];

/** crun fails on a machine that has both cgroup versions, so version 2 is unmounted for podman on such a machine. */
const ONE_CGROUP_SCRIPT = `second=$(awk '$3 == "cgroup2" && $2 != "/sys/fs/cgroup" {print $2}' /proc/mounts)
  [ -z "$second" ] || umount $second
  exec podman "$@"`;

/**
 * The privilege options of docs/guides/container.md, and options for machines on which systemd or some resource limits
 * are missing.
 */
export const PRIVILEGE_OPTIONS = [
  ...['--user', '1000:1000', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--read-only'],
  ...['--security-opt', 'unmask=ALL', '--security-opt', `seccomp=${join(CHECKOUT, 'deploy/seccomp.json')}`],
  ...['--tmpfs', '/tmp:mode=1777,size=512m', '--cgroups=disabled'],
  ...['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=8000:8000'],
];

const unshareArgs = (args: readonly string[]): string[] => [
  ...['--mount', '--propagation', 'private', 'sh', '-c', ONE_CGROUP_SCRIPT, 'podman', ...args],
];

export function runPodman(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('unshare', unshareArgs(args), {
    encoding: 'utf8',
    timeout: BUILD_TIMEOUT_MS,
  });
  assert.equal(status, 0, `podman ${args.join(' ')}: ${stderr}`);
  return stdout.trim();
}

/**
 * Starts podman. With `--interactive`, the input of the container is a pipe from this process. Otherwise it is
 * /dev/null, and crun makes the user of the container the owner of the machine's own /dev/null.
 */
export function startPodman(args: readonly string[], prefix: readonly string[] = []): ChildProcess {
  const [command = '', ...rest] = [...prefix, 'unshare', ...unshareArgs(args)];
  return spawn(command, rest, { stdio: ['pipe', 'pipe', 'pipe'] });
}

/** Builds the image of a release, and returns its name. */
export function buildImage(tarball: string): string {
  ensureBaseImage();
  const context = mkdtempSync(join(tmpdir(), 'berth-image-'));
  try {
    cpSync(tarball, join(context, 'berth-test.tgz'));
    const file = join(CHECKOUT, 'deploy/Dockerfile');
    const buildOptions = ['--isolation', 'chroot', '--network', 'host', '--build-arg', `BASE=${BASE}`];
    runPodman('build', '--quiet', ...buildOptions, '--file', file, '--tag', IMAGE, context);
  } finally {
    rmSync(context, { recursive: true, force: true });
  }
  after(() => runPodman('rmi', '--force', IMAGE));
  return IMAGE;
}

function ensureBaseImage(): void {
  if (runPodman('images', '--quiet', BASE) !== '') return;
  const folder = mkdtempSync(join(tmpdir(), 'berth-base-'));
  try {
    const root = join(folder, 'root.tar');
    const sourcesPath = APT_SOURCE_PATHS.find(path => existsSync(path)) ?? '';
    const suite = /VERSION_CODENAME=(\w+)/.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'bookworm';
    const args = ['--variant=minbase', `--include=${PACKAGES}`, suite, root, sourcesPath];
    const result = spawnSync('mmdebstrap', args, { encoding: 'utf8', timeout: BUILD_TIMEOUT_MS });
    assert.equal(result.status, 0, result.stderr);
    runPodman('import', '--quiet', root, `${BASE}:debian`);
    const context = join(folder, 'node');
    mkdirSync(context);
    cpSync(process.execPath, join(context, 'node'), { dereference: true });
    writeFileSync(join(context, 'Dockerfile'), `FROM ${BASE}:debian\nCOPY node /usr/local/bin/node\n`);
    runPodman('build', '--quiet', '--isolation', 'chroot', '--tag', BASE, context);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Stops the container in an orderly way and removes it. */
export async function stopContainer(name: string, child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  runPodman('stop', '--time', '60', name);
  await exit;
}
