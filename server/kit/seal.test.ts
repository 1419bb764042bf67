import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Seal } from './seal.ts';
import { Secret } from './secret.ts';

const SECRET = new Secret('x'.repeat(32));
const seal = new Seal(SECRET, 'proxies');

test('what was sealed is opened again, also by a later process', () => {
  const sealed = seal.close('pässword', 'session 1');
  assert.equal(new Seal(SECRET, 'proxies').open(sealed, 'session 1'), 'pässword');
});

test('nothing of the text shows, and the same text is never sealed the same', () => {
  const [one, other] = [seal.close('password', 's'), seal.close('password', 's')];
  assert.notEqual(one, other);
  assert.ok(!Buffer.from(one, 'base64url').includes('pass'));
});

test('another place, purpose or installation cannot open it, and a changed one is refused', () => {
  const sealed = seal.close('password', 'session 1');
  const last = sealed.at(-1) === 'A' ? 'B' : 'A';
  const attempts = [
    () => seal.open(sealed, 'session 2'),
    () => new Seal(SECRET, 'certificates').open(sealed, 'session 1'),
    () => new Seal(new Secret('y'.repeat(32)), 'proxies').open(sealed, 'session 1'),
    () => seal.open(`${sealed.slice(0, -4)}${last}${sealed.slice(-3)}`, 'session 1'),
    () => seal.open(sealed.slice(0, 20), 'session 1'),
    () => seal.open('', 'session 1'),
  ];
  for (const attempt of attempts) assert.throws(attempt);
});
