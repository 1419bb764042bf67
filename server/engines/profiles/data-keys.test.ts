import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { Secret } from '../../kit/secret.ts';
import { DataKeys } from './data-keys.ts';

const keys = new DataKeys(new Secret('a secret of the installation, long enough'));

test('unwraps a key only with its own id and secret', () => {
  const { key, wrapped } = keys.create('one');
  assert.deepEqual(keys.unwrap('one', wrapped).reveal(), key.reveal());
  assert.throws(() => keys.unwrap('two', wrapped));
  assert.throws(() => new DataKeys(new Secret('another secret of another installation')).unwrap('one', wrapped));
});

test('refuses a wrapped key with any byte altered', () => {
  const { wrapped } = keys.create('one');
  for (let at = 0; at < wrapped.length; at++) {
    const altered = Buffer.from(wrapped);
    altered.writeUInt8(altered.readUInt8(at) ^ 1, at);
    assert.throws(() => keys.unwrap('one', altered), `byte ${at}`);
  }
  assert.throws(() => keys.unwrap('one', wrapped.subarray(1)));
});

test('prints a key as stars', () => {
  assert.doesNotMatch(inspect(keys.create('one').key), /[0-9a-f]{8}/);
});
