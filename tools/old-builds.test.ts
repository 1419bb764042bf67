import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { removeOldBuilds, removeOldFiles } from './old-builds.ts';

const HOUR_S = 3_600;

test('removes all but the newest complete builds, and removes unfinished builds only if they are old', t => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-builds-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const nowS = Date.now() / 1000;
  const make = (name: string, hoursOld: number): string => {
    mkdirSync(join(folder, name));
    utimesSync(join(folder, name), nowS - hoursOld * HOUR_S, nowS - hoursOld * HOUR_S);
    return name;
  };
  const digestOf = (digit: string): string => digit.repeat(16);
  make(digestOf('1'), 9);
  make(digestOf('2'), 8);
  make('making-killed', 48);
  make(`${digestOf('3')}.17`, 48);
  // A dangling link. readdir lists it and stat does not find it, as if another process had removed it in between.
  symlinkSync(join(folder, 'nowhere'), join(folder, digestOf('4')));
  const keptNames = [
    ...[make(digestOf('a'), 50), make(digestOf('b'), 7), make(digestOf('c'), 6), digestOf('e')],
    ...[make('making-now', 0), make(`${digestOf('d')}.18`, 0)],
  ];
  writeFileSync(join(folder, 'current'), digestOf('a'));
  make(digestOf('e'), 10);
  removeOldBuilds(folder, digestOf('a'), 2, path => path === join(folder, digestOf('e')));
  assert.deepEqual(readdirSync(folder).sort(), [...keptNames, 'current'].sort());
});

test('removes files older than the retention time from folders at any depth', t => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-compiled-'));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'v24', 'deeper'), { recursive: true });
  const write = (name: string, hoursOld: number): void => {
    writeFileSync(join(folder, name), '');
    const atS = Date.now() / 1000 - hoursOld * HOUR_S;
    utimesSync(join(folder, name), atS, atS);
  };
  write('v24/deeper/old', 3);
  write('v24/deeper/new', 1);
  write('v24/old', 3);
  removeOldFiles(folder, 2 * HOUR_S * 1000);
  assert.deepEqual(readdirSync(folder, { recursive: true }).sort(), ['v24', 'v24/deeper', 'v24/deeper/new']);
  removeOldFiles(join(folder, 'absent'), 0);
});
