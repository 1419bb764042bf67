import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WorkLimitReached } from '../../kit/work-limiter.ts';
import { Passwords } from './passwords.ts';

/** More computations than may run and wait at the same time. */
const TOO_MANY_HASHES = 40;

test('a password check without a stored hash returns false, even after an earlier check was rejected because of overload', async () => {
  const passwords = new Passwords();
  const hashPromises = Array.from({ length: TOO_MANY_HASHES }, () =>
    passwords.hash('a password').catch(() => undefined),
  );
  await assert.rejects(passwords.matches('a password', undefined), WorkLimitReached);
  await Promise.all(hashPromises);
  assert.equal(await passwords.matches('a password', undefined), false);
  const phc = await passwords.hash('a password');
  assert.equal(await passwords.matches('a password', phc), true);
  assert.equal(await passwords.matches('another password', phc), false);
});
