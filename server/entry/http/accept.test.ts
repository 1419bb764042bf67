import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { preferredForm } from './accept.ts';

describe('preferredForm', () => {
  for (const [accept, form] of [
    [undefined, 'json'],
    ['', 'json'],
    ['*/*', 'json'],
    ['application/json', 'json'],
    ['application/*', 'json'],
    ['application/octet-stream', 'bytes'],
    ['Application/Octet-Stream', 'bytes'],
    ['application/octet-stream, */*', 'json'],
    ['application/octet-stream, */*;q=0.8', 'bytes'],
    ['application/json, application/octet-stream', 'json'],
    ['application/json;q=0.5, application/octet-stream', 'bytes'],
    ['application/json;q=0.9, application/octet-stream;q=0.8', 'json'],
    ['application/json;q=0, */*', 'bytes'],
    ['application/octet-stream;q=0, */*', 'json'],
    ['text/html', undefined],
    ['application/json;q=0', undefined],
    ['text/html, application/xhtml+xml, */*;q=0.8', 'json'],
  ] as const)
    it(`returns ${form} for Accept: ${accept}`, () => assert.equal(preferredForm(accept), form));
});
