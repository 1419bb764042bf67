import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { checkColumns, checkFresh, checkSettings, columnsText } from './fresh.ts';
import { errorReference } from './generated-files.ts';
import { listSettingNames } from './setting-names.ts';

test('reports a generated file that is missing or out of date, but not one that matches', t => {
  const root = mkdtempSync(join(tmpdir(), 'berth-fresh-'));
  t.after(() => rmSync(root, { recursive: true }));
  writeFileSync(join(root, 'same.md'), 'a\n');
  writeFileSync(join(root, 'old.md'), 'a\n');
  const violations = checkFresh(root, [
    { path: 'same.md', text: 'a\n' },
    { path: 'old.md', text: 'b\n' },
    { path: 'absent.md', text: 'c\n' },
  ]);
  assert.deepEqual(
    violations.map(one => `${one.path} ${one.what}`),
    ['old.md this generated file is out of date', 'absent.md this generated file is missing'],
  );
});

test('reports that a migration or the file of columns has changed since the file was generated', t => {
  const root = mkdtempSync(join(tmpdir(), 'berth-fresh-'));
  t.after(() => rmSync(root, { recursive: true }));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const migrationPath = 'server/engines/store/migrations/0001-first.ts';
  const columnsPath = 'server/engines/store/generated/columns.ts';
  write(migrationPath, 'create table keys ()');
  write('tools/database-columns.ts', '');
  assert.equal(checkColumns(root).length, 1, 'the file is missing');
  const text = columnsText(root, 'A note.', 'export interface DatabaseColumns {}\n');
  write(columnsPath, text);
  assert.deepEqual(checkColumns(root), []);
  write(columnsPath, text.replace('{}', '{ keys: {} }'));
  assert.equal(checkColumns(root).length, 1, 'the file was changed');
  write(columnsPath, text);
  write(migrationPath, 'create table keys (id uuid)');
  assert.equal(checkColumns(root).length, 1, 'the migration was changed');
});

test('reports a setting that is read but not documented, and a documented setting that is never read', () => {
  const document = '| Setting | Default |\n| --- | --- |\n| `BERTH_LISTEN` | x |\n| `BERTH_OLD` | y |\n';
  assert.deepEqual(
    checkSettings(document, ['BERTH_LISTEN', 'BERTH_NEW']).map(one => one.what),
    [
      'BERTH_NEW is read by server/config.ts and not explained',
      'BERTH_OLD is explained and never read by server/config.ts',
    ],
  );
});

test('finds the names of the settings in config.ts', () => {
  const names = listSettingNames();
  for (const name of ['BERTH_LISTEN', 'DATABASE_URL', 'BERTH_TLS_KEY']) assert.ok(names.includes(name), name);
});

test('the list of errors has one row for each error code', () => {
  const text = errorReference({
    gone: { status: 410, retry: 'no', summary: 'It was here.', whatToDo: 'Nothing.' },
    capacity: { status: 503, retry: 'yes', retryAfterSeconds: 5, summary: 'Full.', whatToDo: 'Wait.' },
  });
  assert.match(text, /^\| 410 \| `gone` \| It was here\. \| Nothing\. \| no \|$/m);
  assert.match(text, /^\| 503 \| `capacity` \| Full\. \| Wait\. \| yes, after 5 s \|$/m);
});
