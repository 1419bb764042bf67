import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { systemClock } from '../../kit/clock.ts';
import { isFault } from '../../kit/fault.ts';
import { silentLog } from '../../kit/log.ts';
import { FrontEnd, type FrontEndFiles } from './front-end.ts';

const root = mkdtempSync(join(tmpdir(), 'berth-front-end-'));
after(() => rmSync(root, { recursive: true, force: true }));
let folderCount = 0;

function open(read: () => Promise<FrontEndFiles>): { frontEnd: FrontEnd; folder: string } {
  const folder = join(root, String(++folderCount));
  return { folder, frontEnd: new FrontEnd({ folder, read, clock: systemClock, log: silentLog }) };
}

const filesOf = (product: string): FrontEndFiles => ({
  product,
  files: new Map([
    ['devtools_app.html', Buffer.from('<p>')],
    ['a/b.js', Buffer.from('import "./c.js"')],
  ]),
});

test('reads the DevTools files once for concurrent requests, and stores the files', async () => {
  let readCount = 0;
  const { frontEnd, folder } = open(async () => filesOf(`Chrome/1.2.${++readCount}`));
  const names = await Promise.all([1, 2, 3].map(() => frontEnd.of('Chrome/1.2.1')));
  assert.deepEqual(names, ['1.2.1', '1.2.1', '1.2.1']);
  assert.equal(await frontEnd.of('Chrome/1.2.1'), '1.2.1');
  assert.equal(readCount, 1);
  assert.equal(readFileSync(join(folder, '1.2.1/a/b.js'), 'utf8'), 'import "./c.js"');
  assert.equal(gunzipSync(readFileSync(join(folder, '1.2.1/a/b.js.gz'))).toString(), 'import "./c.js"');
});

test('serves the DevTools files of the installed Chromium to an older browser, and reads the files once', async () => {
  let readCount = 0;
  const { frontEnd } = open(async () => {
    readCount++;
    return filesOf('Chrome/2.0');
  });
  assert.equal(await frontEnd.of('Chrome/1.9'), '2.0');
  assert.equal(await frontEnd.of('Chrome/1.9'), '2.0');
  assert.equal(readCount, 1);
});

test('keeps the DevTools files of only three versions of Chromium, including the newest', async () => {
  let version = 0;
  const { frontEnd, folder } = open(async () => filesOf(`Chrome/${++version}`));
  for (const product of ['Chrome/1', 'Chrome/2', 'Chrome/3', 'Chrome/4', 'Chrome/5']) await frontEnd.of(product);
  assert.equal(readdirSync(folder).length, 3);
  assert.ok(existsSync(join(folder, '5')));
});

test('reports a failed read of the DevTools files as a fault, creates no folder, and reads again on the next request', async () => {
  let readCount = 0;
  const { frontEnd } = open(async () => {
    if (++readCount === 1) throw new Error('no slot is free');
    return filesOf('Chrome/1');
  });
  await assert.rejects(frontEnd.of('Chrome/1'), error => isFault(error) && error.code === 'devtools_unavailable');
  assert.equal(frontEnd.folderOf('1'), undefined);
  assert.equal(await frontEnd.of('Chrome/1'), '1');
});

test('replaces path separators and leading dots when a version becomes a folder name, and finds no folder for an unsafe name', async () => {
  const { frontEnd } = open(async () => filesOf('Chrome/../../x'));
  assert.equal(await frontEnd.of('Chrome/1'), '_._.._x');
  for (const name of ['..', '.', '', '../1', '.new', 'a/b', '1\0'])
    assert.equal(frontEnd.folderOf(name), undefined, JSON.stringify(name));
});
