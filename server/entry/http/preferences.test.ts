import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPreferences } from './preferences.ts';

test('reads wait, handling and respond-async from one or several headers, in upper or lower case, quoted or not', () => {
  const both = { isStrict: true, isAsync: false, hasZeroWait: false, waitSeconds: 10 };
  assert.deepEqual(readPreferences('handling=strict, wait=10'), both);
  assert.deepEqual(readPreferences('Wait = "10" ; x=1 , HANDLING="Strict"'), both);
  assert.deepEqual(readPreferences(['wait=10', 'handling=strict']), both);
  assert.deepEqual(readPreferences('respond-async, wait=10, handling=strict'), { ...both, isAsync: true });
});

test('distinguishes a wait of 0 seconds from a longer wait', () => {
  assert.equal(readPreferences('wait=0').hasZeroWait, true);
  assert.equal(readPreferences('wait=00').hasZeroWait, true);
  assert.equal(readPreferences('wait=1').hasZeroWait, false);
});

test('ignores invalid preferences', () => {
  const none = { isStrict: false, isAsync: false, hasZeroWait: false };
  for (const header of [undefined, '', 'wait', 'wait=', 'wait=soon', 'wait=-3', 'wait=1.5', 'handling=lenient'])
    assert.deepEqual(readPreferences(header), none, String(header));
  assert.deepEqual(readPreferences('await=10, mishandling=strict'), none);
});

test('limits the wait to the maximum, and uses the first value if a header has several', () => {
  assert.equal(readPreferences('wait=3600').waitSeconds, 55);
  assert.equal(readPreferences('wait=999999999').waitSeconds, 55);
  assert.equal(readPreferences('wait=1').waitSeconds, 1);
  assert.equal(readPreferences('wait=7, wait=9').waitSeconds, 7);
});
