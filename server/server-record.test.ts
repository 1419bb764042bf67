import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { removeServerRecord, runningServer, writeServerRecord } from './server-record.ts';

function writeAndReadRecord(folder: string): object {
  writeServerRecord(folder, ADDRESSES);
  return JSON.parse(readFileSync(join(folder, 'server.json'), 'utf8'));
}

const ADDRESSES = { url: 'http://127.0.0.1:1', publicUrl: 'https://berth.example' };

function makeDataFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-record-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

test('finds a running server by its record, and does not find it after the record is removed', t => {
  const folder = makeDataFolder(t);
  assert.equal(runningServer(folder), undefined);
  writeServerRecord(folder, ADDRESSES);
  assert.equal(runningServer(folder)?.pid, process.pid);
  assert.deepEqual(runningServer(folder)?.addresses, ADDRESSES);
  removeServerRecord(folder);
  assert.equal(runningServer(folder), undefined);
});

test('reports a server as not running after its process has ended, even if its record still exists', async t => {
  const folder = makeDataFolder(t);
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  assert.ok(child.pid);
  writeServerRecord(folder, ADDRESSES, child.pid);
  assert.equal(runningServer(folder)?.pid, child.pid);
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.equal(runningServer(folder), undefined);
});

test('does not mistake another process with the same id for the server', t => {
  const folder = makeDataFolder(t);
  writeServerRecord(folder, ADDRESSES);
  const record: { pid: number; startTicks: string } = JSON.parse(readFileSync(join(folder, 'server.json'), 'utf8'));
  writeFileSync(join(folder, 'server.json'), JSON.stringify({ ...record, startTicks: `${record.startTicks}1` }));
  assert.equal(runningServer(folder), undefined);
});

test('ignores an invalid server record', t => {
  const folder = makeDataFolder(t);
  for (const text of [
    '',
    '{',
    '[]',
    '{"pid":0,"startTicks":"1"}',
    '{"pid":-1,"startTicks":"1"}',
    '{"pid":1,"startTicks":"1"}',
    JSON.stringify({ ...writeAndReadRecord(folder), addresses: { url: 1, publicUrl: '' } }),
  ]) {
    writeFileSync(join(folder, 'server.json'), text);
    assert.equal(runningServer(folder), undefined, text);
  }
});

test('a process removes only its own record', t => {
  const folder = makeDataFolder(t);
  writeServerRecord(folder, ADDRESSES);
  removeServerRecord(folder, process.pid + 1);
  assert.equal(runningServer(folder)?.pid, process.pid);
});
