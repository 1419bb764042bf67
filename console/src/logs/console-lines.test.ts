import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../contract/common.ts';
import { consoleLines } from './console-lines.ts';

const lineOf = (method: string, params: JsonObject) =>
  consoleLines([{ method, pageId: 0, sessionId: 's', timestamp: 5, request: { params, rawBody: '' } }])[0];

test('consoleLines converts a console call to a line with its values and its source position', () => {
  const line = lineOf('Runtime.consoleAPICalled', {
    type: 'warning',
    args: [
      { type: 'string', value: 'careful' },
      { type: 'number', value: 7 },
      { type: 'object', description: 'Object' },
    ],
    stackTrace: { callFrames: [{ url: 'http://a.test/x/app.js?v=1', lineNumber: 11 }] },
  });
  assert.deepEqual([line?.level, line?.message, line?.sourcePosition], ['warning', 'careful 7 Object', 'app.js:12']);
});

test('consoleLines converts exceptions and browser messages to lines', () => {
  const exceptionLine = lineOf('Runtime.exceptionThrown', {
    exceptionDetails: { text: 'Uncaught', exception: { description: 'Error: broken' } },
  });
  assert.deepEqual([exceptionLine?.level, exceptionLine?.message], ['error', 'Error: broken']);
  const browserLine = lineOf('Log.entryAdded', {
    entry: { level: 'error', text: 'Failed to load', url: 'http://a.test/' },
  });
  assert.deepEqual(
    [browserLine?.level, browserLine?.message, browserLine?.sourcePosition],
    ['error', 'Failed to load', 'http://a.test/'],
  );
});

test('consoleLines accepts malformed log entries without throwing', () => {
  assert.equal(lineOf('Runtime.consoleAPICalled', { args: 'x', stackTrace: [] })?.message, '');
  assert.equal(lineOf('Page.loadEventFired', {}), undefined);
});
