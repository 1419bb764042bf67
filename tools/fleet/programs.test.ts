import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Programs } from './programs.ts';

test('waitUntilReady rejects if a program cannot be started, and the calling process keeps running', async () => {
  const programs = new Programs();
  programs.run('database', ['/no/such/program'], {});
  await assert.rejects(
    programs.waitUntilReady('the database', () => false),
    /^Error: database could not be started: .*ENOENT/,
  );
  await programs.endAll();
});
