import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Programs } from './programs.ts';

test('a program that cannot be started fails the wait for it, and does not end this process', async () => {
  const programs = new Programs();
  programs.run('database', ['/no/such/program'], {});
  await assert.rejects(
    programs.waitUntilReady('the database', () => false),
    /^Error: database could not be started: .*ENOENT/,
  );
  await programs.endAll();
});
