// Checks the units in deploy/systemd with systemd's own tool.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { CHECKOUT } from '../harness/server.ts';

/** The program in a unit file, and a program of this machine that replaces it for the check. */
const PROGRAM = { written: 'ExecStart=/usr/local/bin/berth ', here: 'ExecStart=/usr/bin/true ' };

/** Returns the output of systemd-analyze for the unit, and its exit code. */
function verify(name: string, unit: string): { status: number | null; said: string } {
  const folder = mkdtempSync(join(tmpdir(), 'berth-units-'));
  try {
    const file = join(folder, name);
    writeFileSync(file, unit);
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
    return {
      status,
      said: (stdout + stderr)
        .split('\n')
        .filter(line => line.includes(name))
        .join('\n'),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const units = globSync(join(CHECKOUT, 'deploy/systemd/*.service'));

test('systemd accepts each unit without a warning', () => {
  assert.equal(units.length, 2);
  for (const path of units) {
    const unit = readFileSync(path, 'utf8');
    assert.ok(unit.includes(PROGRAM.written), path);
    assert.deepEqual(verify(basename(path), unit.replace(PROGRAM.written, PROGRAM.here)), { status: 0, said: '' });
  }
});

test('systemd-analyze reports an invalid setting in a unit', () => {
  const unit = readFileSync(join(CHECKOUT, 'deploy/systemd/berth.service'), 'utf8');
  assert.match(verify('berth.service', unit.replace('KillMode=process', 'KillMode=proces')).said, /kill mode/i);
});

test('berth.service contains the lines that keep browsers running and prevent a restart after invalid settings', () => {
  const unit = readFileSync(join(CHECKOUT, 'deploy/systemd/berth.service'), 'utf8');
  for (const line of ['KillMode=process', 'Restart=on-failure', 'RestartPreventExitStatus=2', 'Delegate=yes'])
    assert.ok(unit.split('\n').includes(line), line);
});
