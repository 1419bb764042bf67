// Hop-by-hop headers are removed, and the meaning of a message does not change.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endToEndHeadersOf, framingOf, requestHeaders } from './headers.ts';

test('removes hop-by-hop headers and keeps all others unchanged', () => {
  const raw = [
    'X-A',
    '1',
    'Proxy-Authorization',
    'Basic x',
    'Connection',
    'close, X-Mine',
    'x-mine',
    '2',
    'Set-Cookie',
    'a',
    'Set-Cookie',
    'b',
    'TE',
    'trailers',
  ];
  assert.deepEqual(endToEndHeadersOf(raw), ['X-A', '1', 'Set-Cookie', 'a', 'Set-Cookie', 'b']);
  for (const name of [
    'Keep-Alive',
    'Proxy-Connection',
    'Proxy-Authenticate',
    'Trailer',
    'Transfer-Encoding',
    'Upgrade',
    'CONNECTION',
  ])
    assert.deepEqual(endToEndHeadersOf([name, 'x', 'A', 'b']), ['A', 'b'], name);
});

test('keeps Content-Length, Cookie and Authorization even if Connection names them', () => {
  const raw = [
    'Connection',
    'Content-Length, Cookie, Host, Authorization',
    'Content-Length',
    '5',
    'Cookie',
    'c',
    'Authorization',
    'd',
  ];
  assert.deepEqual(endToEndHeadersOf(raw), ['Content-Length', '5', 'Cookie', 'c', 'Authorization', 'd']);
});

test('uses the host of the URL, not the Host header', () => {
  assert.deepEqual(requestHeaders('GET', 'a.test', ['Host', 'b.test', 'HOST', 'c.test', 'Accept', '*/*']), [
    'Host',
    'a.test',
    'Connection',
    'keep-alive',
    'Accept',
    '*/*',
  ]);
});

test('determines the framing of a body, returns unknown for ambiguous headers, and sends Content-Length: 0 in a POST without a body', () => {
  assert.equal(framingOf([]), 'none');
  assert.equal(framingOf(['Content-Length', '0']), 'none');
  assert.equal(framingOf(['content-length', '7']), 'length');
  assert.equal(framingOf(['Transfer-Encoding', 'Chunked']), 'chunked');
  for (const raw of [
    ['Transfer-Encoding', 'gzip, chunked'],
    ['Transfer-Encoding', 'chunked', 'Transfer-Encoding', 'chunked'],
    ['Transfer-Encoding', 'identity'],
    ['Transfer-Encoding', 'chunked', 'Content-Length', '5'],
    ['Content-Length', '5', 'Content-Length', '5'],
  ])
    assert.equal(framingOf(raw), 'unknown', raw.join(' '));
  assert.deepEqual(requestHeaders('GET', 'a', ['Transfer-Encoding', 'chunked']).slice(4), [
    'Transfer-Encoding',
    'chunked',
  ]);
  assert.deepEqual(requestHeaders('POST', 'a', []).slice(4), ['Content-Length', '0']);
  assert.deepEqual(requestHeaders('POST', 'a', ['Content-Length', '0']).slice(4), ['Content-Length', '0']);
});
