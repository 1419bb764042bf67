// Error messages of failed boxes, as seen on real machines, and the remedy for each.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cureFor } from './cures.ts';

const SEEN: readonly (readonly [message: string, cure: RegExp])[] = [
  ['unshare: unshare failed: Operation not permitted', /max_user_namespaces.*seccomp/],
  ['unshare: unshare failed: No space left on device', /max_user_namespaces/],
  ['bwrap: No permissions to create a new namespace, likely because', /max_user_namespaces/],
  ['bwrap: pivot_root: Operation not permitted', /seccomp profile/],
  ["bwrap: Can't set hostname", /seccomp profile/],
  ["bwrap: Can't mount proc on /newroot/proc: Operation not permitted", /systempaths=unconfined/],
  ['RTNETLINK answers: Operation not permitted', /ordinary user/],
  ['bwrap: setting up uid map: Operation not permitted', /ordinary user/],
  ['error while loading shared libraries: libnss3.so', /chromium package/],
  ['something never seen', /berth doctor/],
];

for (const [message, cure] of SEEN)
  test(`suggests a remedy for "${message}"`, () => assert.match(cureFor(message), cure));
