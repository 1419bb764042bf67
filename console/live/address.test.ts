import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressOf } from './address.ts';

test('addressOf keeps an address that has a scheme', () => {
  for (const text of ['https://example.com/', 'http://localhost:3000/x', 'about:blank', 'data:text/html,x'])
    assert.equal(addressOf(text), text);
});

test('addressOf uses https for names without a scheme', () => {
  for (const text of ['example.com', 'example.com/path?q=a:1', 'sub.example.com:443/x'])
    assert.equal(addressOf(text), `https://${text}`);
});

test('addressOf uses http for local names, IP addresses and ports other than 443', () => {
  for (const text of [
    'localhost',
    'localhost:3000/x',
    'intranet/wiki',
    '10.0.0.7',
    '[::1]:8080/',
    'example.com:8080',
    'app.test',
  ])
    assert.equal(addressOf(text), `http://${text}`);
});
