import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../contract/common.ts';
import type { SessionLog } from '../../../contract/logs.ts';
import { networkCalls, shortUrl } from './network-calls.ts';

const createLogEntry = (method: string, timestamp: number, params: JsonObject): SessionLog => ({
  method,
  pageId: 0,
  sessionId: 's',
  timestamp,
  request: { params, rawBody: '' },
});

test('networkCalls merges the events of a request into one call and returns two calls for a redirected request', () => {
  const calls = networkCalls([
    createLogEntry('Network.requestWillBeSent', 10, {
      requestId: '1',
      type: 'Document',
      request: { url: 'http://a/', method: 'GET' },
    }),
    createLogEntry('Network.requestWillBeSent', 20, {
      requestId: '1',
      type: 'Document',
      request: { url: 'http://a/b', method: 'GET' },
      redirectResponse: { status: 302, mimeType: 'text/html' },
    }),
    createLogEntry('Network.responseReceived', 30, {
      requestId: '1',
      response: { status: 200, mimeType: 'text/html', headers: { a: 'b' } },
    }),
    createLogEntry('Network.loadingFinished', 40, { requestId: '1', encodedDataLength: 99 }),
    createLogEntry('Network.requestWillBeSent', 50, { requestId: '2', request: { url: 'http://c/', method: 'POST' } }),
    createLogEntry('Network.loadingFailed', 60, { requestId: '2', errorText: 'net::ERR_FAILED' }),
  ]);
  assert.deepEqual(
    calls.map(({ url, status, startMs, endMs, bytes, failureText }) => [
      url,
      status,
      startMs,
      endMs,
      bytes,
      failureText,
    ]),
    [
      ['http://a/', 302, 10, 20, undefined, undefined],
      ['http://a/b', 200, 20, 40, 99, undefined],
      ['http://c/', undefined, 50, 60, undefined, 'net::ERR_FAILED'],
    ],
  );
});

test('networkCalls accepts malformed log entries without throwing', () => {
  const odd = { method: 'Network.requestWillBeSent', pageId: 0, sessionId: 's' };
  assert.deepEqual(networkCalls([odd, createLogEntry('Network.loadingFinished', 1, { requestId: 7 })]).length, 1);
  assert.equal(networkCalls([createLogEntry('Network.requestWillBeSent', 1, { request: 'x' })])[0]?.url, '');
});

test('shortUrl shortens a URL to its last part', () => {
  assert.equal(shortUrl('https://a.test/x/app.js?v=1'), 'app.js');
  assert.equal(shortUrl('https://a.test/'), 'a.test');
  assert.equal(shortUrl('data:text/html,hello'), 'data:…');
  assert.equal(shortUrl('nonsense'), 'nonsense');
});
