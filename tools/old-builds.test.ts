import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { removeOldBuilds } from './old-builds.ts';

const HOUR_S = 3_600;

test('removes all but the newest complete builds, and unfinished ones only if they are old', t => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-builds-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const nowS = Date.now() / 1000;
  const make = (name: string, hoursOld: number): string => {
    mkdirSync(join(folder, name));
    utimesSync(join(folder, name), nowS - hoursOld * HOUR_S, nowS - hoursOld * HOUR_S);
    return name;
  };
  const digest = (digit: string): string => digit.repeat(16);
  make(digest('1'), 9);
  make(digest('2'), 8);
  make('making-killed', 48);
  make(`${digest('3')}.17`, 48);
  // As if another process removed it between the list and the look at its time.
  symlinkSync(join(folder, 'nowhere'), join(folder, digest('4')));
  const kept = [
    ...[make(digest('a'), 50), make(digest('b'), 7), make(digest('c'), 6)],
    ...[make('making-now', 0), make(`${digest('d')}.18`, 0)],
  ];
  writeFileSync(join(folder, 'current'), digest('a'));
  removeOldBuilds(folder, digest('a'), 2);
  assert.deepEqual(readdirSync(folder).sort(), [...kept, 'current'].sort());
});
