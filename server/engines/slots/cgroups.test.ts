// Imitates cgroup v2 in an ordinary folder, because a machine has either v1 or v2. How the kernel reacts to the writes
// that these tests expect was verified in a virtual machine. tests/engines/slots.test.ts uses the real cgroups of the
// machine, if the user may create them.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { Cgroup } from './cgroup.ts';
import { Cgroups } from './cgroups.ts';

const LIMITS = { memoryBytes: 500_000_000, diskBytes: 1, pids: 1500, cpus: 1.5 };
let top = '';

beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), 'berth-cgroups-'));
});
afterEach(() => rmSync(top, { recursive: true }));

const makeSources = (type: string, options: string, membership: string) => ({
  mountinfo: `30 20 0:26 / ${top} rw,nosuid shared:4 - ${type} cgroup ${options}\n`,
  membership,
  pid: 4321,
});

/** Imitates a group that has controllers and has enabled them for its children. */
function makeDelegatedGroup(path: string, enabled = 'cpu memory pids'): void {
  mkdirSync(join(top, path), { recursive: true });
  writeFileSync(join(top, path, 'cgroup.controllers'), 'cpu io memory pids\n');
  writeFileSync(join(top, path, 'cgroup.subtree_control'), enabled);
}

test('v2: creates the cgroup of a box below the cgroup of the server, and writes its limits', () => {
  makeDelegatedGroup('berth.service');
  makeDelegatedGroup('berth.service/berth-cafe0000');
  const cgroups = new Cgroups('cafe0000', makeSources('cgroup2', 'rw,nsdelegate', '0::/berth.service\n'));
  assert.deepEqual(cgroups.absentControllers, []);
  assert.deepEqual(cgroups.versions, [2]);
  const cgroup = cgroups.make('session', LIMITS);
  const folder = join(top, 'berth.service/berth-cafe0000/session');
  assert.deepEqual(cgroup.folders, [folder]);
  assert.deepEqual(cgroup.joinFiles, [join(folder, 'cgroup.procs')]);
  const contentOf = (file: string) => readFileSync(join(folder, file), 'utf8');
  assert.equal(contentOf('memory.max'), '500000000');
  assert.equal(contentOf('memory.swap.max'), '0');
  assert.equal(contentOf('memory.oom.group'), '0');
  assert.equal(contentOf('pids.max'), '1500');
  assert.equal(contentOf('cpu.max'), '150000 100000');
});

test('v2: finds the parent cgroup after the server was moved to a leaf cgroup', () => {
  makeDelegatedGroup('berth.service');
  makeDelegatedGroup('berth.service/berth-cafe0000');
  const moved = makeSources('cgroup2', 'rw', '0::/berth.service/berth-main\n');
  assert.deepEqual(new Cgroups('cafe0000', moved).folders, [join(top, 'berth.service/berth-cafe0000')]);
});

test('reads the peak memory on v1 and v2, and returns undefined if the kernel does not report it', () => {
  const [first, second] = [join(top, 'memory'), join(top, 'unified')];
  for (const folder of [first, second]) mkdirSync(folder);
  const cgroup = new Cgroup([first, second]);
  assert.equal(cgroup.peakMemoryBytes(), undefined);
  writeFileSync(join(second, 'memory.peak'), '345678\n');
  assert.equal(cgroup.peakMemoryBytes(), 345_678);
  writeFileSync(join(first, 'memory.max_usage_in_bytes'), '123456\n');
  assert.equal(cgroup.peakMemoryBytes(), 123_456);
});

test('v2: reports unavailable controllers as absent', () => {
  mkdirSync(join(top, 'user.slice'));
  writeFileSync(join(top, 'user.slice/cgroup.controllers'), '\n');
  writeFileSync(join(top, 'cgroup.controllers'), 'hugetlb\n');
  const cgroups = new Cgroups('cafe0000', makeSources('cgroup2', 'rw', '0::/user.slice\n'));
  assert.deepEqual(cgroups.absentControllers, ['memory', 'pids', 'cpu']);
  assert.deepEqual(cgroups.make('session', LIMITS).folders, []);
});

test('v1: uses the controllers of each hierarchy, below the cgroup of the server', () => {
  mkdirSync(join(top, 'own'));
  const v1 = makeSources('cgroup', 'rw,cpu,cpuacct', '3:cpu,cpuacct:/own\n0::/\n');
  const cgroups = new Cgroups('cafe0000', v1);
  assert.deepEqual(cgroups.absentControllers, ['memory', 'pids']);
  const folder = join(top, 'own/berth-cafe0000/session');
  assert.deepEqual(cgroups.make('session', LIMITS).folders, [folder]);
  assert.equal(readFileSync(join(folder, 'cpu.cfs_quota_us'), 'utf8'), '150000');
});

test('creates the parent folder of the cgroups again if it is missing when a cgroup is created', () => {
  mkdirSync(join(top, 'own'));
  const cgroups = new Cgroups('cafe0000', makeSources('cgroup', 'rw,pids', '3:pids:/own\n'));
  cgroups.close();
  assert.equal(existsSync(join(top, 'own/berth-cafe0000')), false);
  assert.ok(existsSync(join(cgroups.make('session', LIMITS).folders[0] ?? '', 'pids.max')));
});

test('counts out-of-memory kills on v1 and v2', () => {
  writeFileSync(join(top, 'memory.events'), 'low 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n');
  assert.equal(new Cgroup([top]).outOfMemoryKills(), 2);
  rmSync(join(top, 'memory.events'));
  writeFileSync(join(top, 'memory.oom_control'), 'oom_kill_disable 0\nunder_oom 0\noom_kill 5\n');
  assert.equal(new Cgroup([top]).outOfMemoryKills(), 5);
  rmSync(join(top, 'memory.oom_control'));
  assert.equal(new Cgroup([top]).outOfMemoryKills(), 0);
});

test('reads the processor time on v1 and v2, and returns undefined if the kernel does not report it', () => {
  assert.equal(new Cgroup([top]).usedMs(), undefined);
  writeFileSync(join(top, 'cpuacct.usage'), '2500000\n');
  assert.equal(new Cgroup([top]).usedMs(), 2.5);
  writeFileSync(join(top, 'cpu.stat'), 'usage_usec 7250\nuser_usec 7000\n');
  assert.equal(new Cgroup([top]).usedMs(), 7.25);
});

test('applies the latest processor share of a box when the box is no longer scheduled as idle', () => {
  const cgroup = new Cgroup([top]);
  for (const file of ['cpu.idle', 'cpu.weight']) writeFileSync(join(top, file), '');
  const contentOf = (file: string) => readFileSync(join(top, file), 'utf8');
  cgroup.setShare(0.1);
  cgroup.scheduleAsIdle(true);
  assert.deepEqual([contentOf('cpu.idle'), contentOf('cpu.weight')], ['1', '10']);
  // The kernel refuses to set the weight of an idle group.
  cgroup.setShare(0.5);
  assert.equal(contentOf('cpu.weight'), '10');
  cgroup.scheduleAsIdle(false);
  assert.deepEqual([contentOf('cpu.idle'), contentOf('cpu.weight')], ['0', '50']);
});

test('gives an idle box a small processor share on a kernel without cpu.idle', () => {
  const cgroup = new Cgroup([top]);
  writeFileSync(join(top, 'cpu.shares'), '');
  cgroup.scheduleAsIdle(true);
  assert.equal(readFileSync(join(top, 'cpu.shares'), 'utf8'), '20');
  cgroup.scheduleAsIdle(false);
  assert.equal(readFileSync(join(top, 'cpu.shares'), 'utf8'), '1024');
});
