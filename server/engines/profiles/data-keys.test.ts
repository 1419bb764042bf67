import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { Secret } from '../../kit/secret.ts';
import { DataKeys } from './data-keys.ts';

const keys = new DataKeys(new Secret('a secret of the installation, long enough'));

test('a wrapped key opens under its own id and secret, and under no other', () => {
  const { key, wrapped } = keys.make('one');
  assert.deepEqual(keys.unwrap('one', wrapped).reveal(), key.reveal());
  assert.throws(() => keys.unwrap('two', wrapped));
  assert.throws(() => new DataKeys(new Secret('another secret of another installation')).unwrap('one', wrapped));
});

test('every altered byte of a wrapped key is noticed', () => {
  const { wrapped } = keys.make('one');
  for (let at = 0; at < wrapped.length; at++) {
    const altered = Buffer.from(wrapped);
    altered.writeUInt8(altered.readUInt8(at) ^ 1, at);
    assert.throws(() => keys.unwrap('one', altered), `byte ${at}`);
  }
  assert.throws(() => keys.unwrap('one', wrapped.subarray(1)));
});

test('a key prints as stars', () => {
  assert.doesNotMatch(inspect(keys.make('one').key), /[0-9a-f]{8}/);
});
