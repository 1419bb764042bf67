// Attacks by a helper program (ffmpeg) that a hostile picture has taken over: a script runs in its place, in each form of
// the chain that the server starts it with. The script says what it could do; refused in a jail, and possible without
// one as far as bounds do not hold it, so that the suite is known to bite.
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
const ATTACKED_WITHIN_MS = 60_000;
const BOUNDS = { memoryBytes: 256 * MIB, cpuSeconds: 1 };

/** Each ends with a word on its output where it succeeds. */
const ATTACKS = {
  'read /etc/passwd': 'open(F, "<", "/etc/passwd") and print "done"',
  'read an open file of the data folder': 'open(F, "<", $ARGV[0]) and print "done"',
  'look at other processes': 'opendir(D, "/proc") and (grep { /^[0-9]+$/ } readdir D) and print "done"',
  'see its own open files by name': 'opendir(D, "/proc/self/fd") and print "done"',
  'reach a port of this machine':
    'socket(S, 2, 1, 0) and connect(S, pack("S n C4 x8", 2, $ARGV[1], 127, 0, 0, 1)) and print "done"',
  'start a program of the system': 'system("/bin/true") == 0 and print "done"',
  'write a file': 'open(F, ">", "/tmp/berth-helper-attack") and (print F "x") and close(F) and print "done"',
} as const;
/** Refused with and without a jail. */
const BOUNDED = {
  'take more memory than its bound': 'my $x = "x" x (300 * 1024 * 1024); print "done"',
  'compute for longer than its bound': '1 while (times)[0] < 20; print "done"',
  'write a file of a megabyte':
    '$SIG{XFSZ} = "IGNORE"; $d = -w "/dev/shm" ? "/dev/shm" : "/"; open(F, ">", "$d/berth-helper-attack") and (print F "x" x 1048576) and close(F) and print "done"',
} as const;
const FORKS = '$n = 0; for (1..200) { my $p = fork; last unless defined $p; if (!$p) { sleep 2; exit } $n++ } print $n';

if (process.getuid?.() === 0) for (const form of ['root', 'rootless', 'process'] as const) suite(form);

function suite(form: Form): void {
  describe(`attacks by a helper, form ${form}`, () => {
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

    const run = (script: string) => {
      const address = server.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      const args = ['-', join(folder, 'secret'), String(port)];
      const { file, args: rest } = helperChain({
        ...{ form, uid: HELPER_UID, program: '/usr/bin/perl', args, bounds: BOUNDS },
      });
      const ordinary = ['setpriv', `--reuid=${ORDINARY_UID}`, `--regid=${ORDINARY_UID}`, '--clear-groups', '--'];
      const [command = '', ...all] = [...(form === 'rootless' ? ordinary : []), file, ...rest];
      const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
      return spawnSync(command, all, { encoding: 'utf8', timeout: ATTACKED_WITHIN_MS, cwd: '/', env, input: script });
    };

    test('it runs, and says so', () => {
      const { stdout, stderr } = run('print "done"');
      assert.equal(stdout, 'done', stderr);
    });

    for (const [name, script] of Object.entries(ATTACKS)) {
      const succeeds = form === 'process';
      test(`${name}: ${succeeds ? 'succeeds' : 'refused'}`, () => {
        const { stdout, stderr } = run(script);
        assert.equal(stdout, succeeds ? 'done' : '', stderr);
      });
    }
    for (const [name, script] of Object.entries(BOUNDED))
      test(`${name}: refused`, () => {
        const { stdout, stderr } = run(script);
        assert.equal(stdout, '', stderr);
      });
    if (form !== 'process')
      test('start two hundred processes: refused', () => {
        const { stdout, stderr } = run(FORKS);
        assert.ok(Number(stdout) > 0 && Number(stdout) < 64, `${stdout} ${stderr}`);
      });
  });
}
