import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WorkLimitReached } from '../../kit/work-limiter.ts';
import { Passwords } from './passwords.ts';

/** More computations than may run and wait at the same time. */
const TOO_MANY = 40;

test('a password can be checked without a hash after an earlier check was rejected because too many checks were waiting', async () => {
  const passwords = new Passwords();
  const hashing = Array.from({ length: TOO_MANY }, () => passwords.hash('a password').catch(() => undefined));
  await assert.rejects(passwords.matches('a password', undefined), WorkLimitReached);
  await Promise.all(hashing);
  assert.equal(await passwords.matches('a password', undefined), false);
  const phc = await passwords.hash('a password');
  assert.equal(await passwords.matches('a password', phc), true);
  assert.equal(await passwords.matches('another password', phc), false);
});
