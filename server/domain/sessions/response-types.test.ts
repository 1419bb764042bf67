import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ResponseTypes } from './response-types.ts';

const URL = 'https://a.test/report';

function typeOfResponse(headers: unknown, type = 'Document'): string | undefined {
  const types = new ResponseTypes();
  types.handleEvent('Network.responseReceived', { type, response: { url: URL, headers } });
  return types.of(URL);
}

test('returns the content type that the server sent, in lower case and without parameters', () => {
  assert.equal(typeOfResponse({ 'Content-Type': 'Text/CSV; charset=utf-8' }), 'text/csv');
  assert.equal(typeOfResponse({ 'content-type': 'application/vnd.ms-excel' }), 'application/vnd.ms-excel');
});

test('ignores generic and invalid types, and resources other than documents', () => {
  for (const contentType of [
    'application/octet-stream',
    'application/force-download',
    'csv',
    'text/',
    'text/c\nsv',
    '*/*',
    7,
    null,
  ])
    assert.equal(typeOfResponse({ 'content-type': contentType }), undefined, String(contentType));
  for (const headers of [{}, undefined, 'x', []]) assert.equal(typeOfResponse(headers), undefined);
  assert.equal(typeOfResponse({ 'content-type': 'image/png' }, 'Image'), undefined);
});

test('remembers the latest content type of each URL, for at most 100 URLs', () => {
  const types = new ResponseTypes();
  const reportResponse = (url: string, type: string): void =>
    types.handleEvent('Network.responseReceived', {
      type: 'Document',
      response: { url, headers: { 'content-type': type } },
    });
  reportResponse(URL, 'text/csv');
  reportResponse(URL, 'application/octet-stream');
  assert.equal(types.of(URL), undefined);
  for (let page = 0; page < 101; page++) reportResponse(`https://a.test/${page}`, 'text/html');
  assert.deepEqual([types.of('https://a.test/0'), types.of('https://a.test/100')], [undefined, 'text/html']);
  reportResponse(`https://a.test/${'x'.repeat(5000)}`, 'text/html');
  assert.equal(types.of(`https://a.test/${'x'.repeat(5000)}`), undefined);
});
