// Attacks by a helper program (ffmpeg) that a hostile image has taken over. A script runs in place of the program, in
// each form of isolation, and reports what it could do. Every attack is refused in a jail. Without a jail every attack
// succeeds, except where limits apply, which proves that the tests are effective.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { helperChain } from '../../server/engines/slots/helper-chain.ts';
import type { Form } from '../../server/engines/slots/slots.ts';

const MIB = 1024 ** 2;
const HELPER_UID = 199_998;
const ORDINARY_UID = 199_997;
const ATTACK_TIMEOUT_MS = 60_000;
const BOUNDS = { memoryBytes: 256 * MIB, cpuSeconds: 1 };

/** Each script prints a word if its attack succeeds. */
const ATTACKS = {
  'read /etc/passwd': 'open(F, "<", "/etc/passwd") and print "done"',
  'read an open file of the data folder': 'open(F, "<", $ARGV[0]) and print "done"',
  'list other processes': 'opendir(D, "/proc") and (grep { /^[0-9]+$/ } readdir D) and print "done"',
  'list its own open files': 'opendir(D, "/proc/self/fd") and print "done"',
  'reach a port of this machine':
    'socket(S, 2, 1, 0) and connect(S, pack("S n C4 x8", 2, $ARGV[1], 127, 0, 0, 1)) and print "done"',
  'start a system program': 'system("/bin/true") == 0 and print "done"',
  'write a file': 'open(F, ">", "/tmp/berth-helper-attack") and (print F "x") and close(F) and print "done"',
} as const;
/** Attacks that limits stop, with and without a jail. */
const BOUNDED_ATTACKS = {
  'use more memory than its limit': 'my $x = "x" x (300 * 1024 * 1024); print "done"',
  'use more CPU time than its limit': '1 while (times)[0] < 20; print "done"',
  'write a file of one megabyte':
    '$SIG{XFSZ} = "IGNORE"; $d = -w "/dev/shm" ? "/dev/shm" : "/"; open(F, ">", "$d/berth-helper-attack") and (print F "x" x 1048576) and close(F) and print "done"',
} as const;
/** System call numbers by architecture. With the arguments of the tests, an allowed call has no effect. */
const SYSTEM_CALLS: Readonly<Record<string, readonly [x64: number, arm64: number]>> = {
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  setns: [308, 268],
  open_tree: [428, 428],
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  add_key: [248, 217],
  keyctl: [250, 219],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  kexec_load: [246, 104],
  init_module: [175, 105],
  clone3: [435, 435],
};
/** A system call of the x32 ABI, which an x64 kernel may support: getpid. */
const X32_GETPID = 0x40000000 + 39;
const [EPERM, ENOSYS] = [1, 38];
const MOUNT_NAMESPACE = 0x00020000;
const USER_NAMESPACE = 0x10000000;
const UNSHARE_CALL = { x64: 272, arm64: 97 };
const SOCKET_CALL = { x64: 41, arm64: 198 };

const callScript = (...all: readonly number[]): string => `print syscall(${all.join(', ')}) >= 0 ? 0 : $! + 0`;
const numberOf = ([x64, arm64]: readonly [number, number]): number => (process.arch === 'arm64' ? arm64 : x64);

/**
 * Starts up to 200 processes, and keeps all of them alive until the last one has been started, even on a busy machine.
 */
const FORK_SCRIPT =
  'for (1..200) { my $p = fork; last unless defined $p; if (!$p) { sleep 60; exit } push @p, $p } kill 9, @p; print scalar @p';

if (process.getuid?.() === 0) for (const form of ['root', 'rootless', 'process'] as const) describeAttacks(form);

function describeAttacks(form: Form): void {
  describe(`attacks by a helper with the isolation form ${form}`, () => {
    const server = createServer(socket => socket.end());
    let folder = '';
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'berth-helper-'));
      writeFileSync(join(folder, 'secret'), 'secret', { mode: 0o644 });
      chmodSync(folder, 0o755);
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    });
    after(() => {
      server.close();
      rmSync(folder, { recursive: true });
      for (const folder of ['/tmp', '/dev/shm']) rmSync(join(folder, 'berth-helper-attack'), { force: true });
    });

    const runScript = (script: string) => {
      const address = server.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      const args = ['-', join(folder, 'secret'), String(port)];
      const { file, args: rest } = helperChain({
        ...{ form, uid: HELPER_UID, program: '/usr/bin/perl', args, bounds: BOUNDS },
      });
      const ordinaryUserCommand = [
        'setpriv',
        `--reuid=${ORDINARY_UID}`,
        `--regid=${ORDINARY_UID}`,
        '--clear-groups',
        '--',
      ];
      const [command = '', ...all] = [...(form === 'rootless' ? ordinaryUserCommand : []), file, ...rest];
      const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
      return spawnSync(command, all, { encoding: 'utf8', timeout: ATTACK_TIMEOUT_MS, cwd: '/', env, input: script });
    };

    test('the test can run a script in place of the helper program', () => {
      const { stdout, stderr } = runScript('print "done"');
      assert.equal(stdout, 'done', stderr);
    });

    for (const [name, script] of Object.entries(ATTACKS)) {
      const succeeds = form === 'process';
      test(`a helper ${succeeds ? 'can' : 'cannot'} ${name}`, () => {
        const { stdout, stderr } = runScript(script);
        assert.equal(stdout, succeeds ? 'done' : '', stderr);
      });
    }
    for (const [name, script] of Object.entries(BOUNDED_ATTACKS))
      test(`a helper cannot ${name}`, () => {
        const { stdout, stderr } = runScript(script);
        assert.equal(stdout, '', stderr);
      });
    if (form === 'process') return;
    for (const [name, numbers] of Object.entries(SYSTEM_CALLS))
      test(`the seccomp filter refuses the system call ${name} of a helper`, () => {
        const { stdout, stderr } = runScript(callScript(numberOf(numbers), -1, -1, -1, -1, -1));
        assert.ok([EPERM, ENOSYS].includes(Number(stdout || NaN)), `${stdout} ${stderr}`);
      });
    test('a helper can create a user namespace, but not together with a mount namespace', () => {
      const unshareNumber = numberOf([UNSHARE_CALL.x64, UNSHARE_CALL.arm64]);
      assert.equal(runScript(callScript(unshareNumber, MOUNT_NAMESPACE + USER_NAMESPACE)).stdout, String(ENOSYS));
      assert.equal(runScript(callScript(unshareNumber, USER_NAMESPACE)).stdout, '0');
    });
    test('a helper cannot open packet, netfilter, virtual machine or kernel crypto sockets, but can open a TCP socket', () => {
      const socketNumber = numberOf([SOCKET_CALL.x64, SOCKET_CALL.arm64]);
      for (const [family, type, protocol] of [
        [17, 3, 0],
        [16, 3, 12],
        [40, 1, 0],
        [38, 5, 0],
      ] as const)
        assert.equal(
          runScript(callScript(socketNumber, family, type, protocol)).stdout,
          String(ENOSYS),
          `family ${family}`,
        );
      assert.equal(runScript(callScript(socketNumber, 2, 1, 0)).stdout, '0');
    });
    if (process.arch === 'x64')
      test('a helper cannot make a system call of the x32 ABI', () => {
        assert.equal(runScript(callScript(X32_GETPID)).stdout, String(ENOSYS));
      });
    test('the process limit prevents a helper from starting two hundred processes', () => {
      const { stdout, stderr } = runScript(FORK_SCRIPT);
      assert.ok(Number(stdout) > 0 && Number(stdout) < 64, `${stdout} ${stderr}`);
    });
  });
}
