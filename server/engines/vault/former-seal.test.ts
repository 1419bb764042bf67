import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '../../kit/secret.ts';
import { isFormerContextKey, openFormerContextKey, openFormerRoutes } from './former-seal.ts';

// Values that were stored by the last version without a vault.
const SECRET = new Secret('a secret of the installation, long enough');
const KEY = '0f6ed10136470e2d60898efcc20fcb2aae49e89f0082a210c76e99416ab99c72';
const WRAPPED_KEY = Buffer.from(
  '01656f844c9558b4283af2f1716b3bfa4a148b38cfaa110d05437326b74ef6c108593e159882244f96c7a12a8162711caa86eb396f70d3dc4f2052a131',
  'hex',
);
const SEALED_ROUTES = 'J11OYq9QPDiV3UNr9_P8lti6MDw4O_QSDXx-a3Q7T0pdV-X5ByZhCZO6obTg9H5G';

test('opens a context key and proxy routes that were sealed in the former format', () => {
  assert.ok(isFormerContextKey(WRAPPED_KEY));
  assert.equal(openFormerContextKey(SECRET, 'one', WRAPPED_KEY).reveal().toString('hex'), KEY);
  assert.equal(openFormerRoutes(SECRET, 'session 1', SEALED_ROUTES), '[{"by":"pässword"}]');
});

test('rejects a sealed value that was moved to another row, opened with another secret, or changed', () => {
  const otherSecret = new Secret('another secret of another installation');
  for (const attempt of [
    () => openFormerContextKey(SECRET, 'two', WRAPPED_KEY),
    () => openFormerContextKey(otherSecret, 'one', WRAPPED_KEY),
    () => openFormerContextKey(SECRET, 'one', WRAPPED_KEY.subarray(1)),
    () => openFormerRoutes(SECRET, 'session 2', SEALED_ROUTES),
    () => openFormerRoutes(otherSecret, 'session 1', SEALED_ROUTES),
    () => openFormerRoutes(SECRET, 'session 1', SEALED_ROUTES.slice(0, 20)),
    () => openFormerRoutes(SECRET, 'session 1', `K${SEALED_ROUTES.slice(1)}`),
  ])
    assert.throws(attempt);
});
