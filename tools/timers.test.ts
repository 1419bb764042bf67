import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkTimers } from './timers.ts';

const violationsOf = (text: string, exceptions = {}, path = 'server/entry/a.ts'): string[] =>
  checkTimers([{ path, text }], exceptions).map(({ path, line, what }) => `${path}:${line ?? ''} ${what}`);

test('reports real timers in server code, regardless of how they are imported', () => {
  assert.deepEqual(violationsOf('const a = 1;\nsetTimeout(end, 10);'), ['server/entry/a.ts:2 a real timer']);
  assert.equal(violationsOf('const signal = AbortSignal.timeout(10);').length, 1);
  assert.equal(violationsOf('const often = setInterval(look, 10);').length, 1);
  assert.equal(violationsOf("import { setTimeout as timer } from 'node:timers/promises';").length, 1);
  assert.equal(violationsOf("import { setInterval } from 'timers';").length, 1);
});

test('accepts the clock, socket timeouts, setImmediate, tests, and files with a documented reason', () => {
  assert.deepEqual(violationsOf('await clock.sleep(10);\nsocket.setTimeout(10);\nsetImmediate(work);'), []);
  assert.deepEqual(violationsOf("import { setImmediate } from 'node:timers/promises';"), []);
  assert.deepEqual(violationsOf('setTimeout(end, 10);', {}, 'server/kit/clock.ts'), []);
  assert.deepEqual(violationsOf('setTimeout(end, 10);', {}, 'server/kit/a.test.ts'), []);
  assert.deepEqual(violationsOf('setTimeout(end, 10);', { 'server/entry/a.ts': 'a socket' }), []);
});

test('reports an exception for a file that has no timer', () => {
  assert.equal(violationsOf('const a = 1;', { 'server/entry/a.ts': 'a socket' }).length, 1);
});
