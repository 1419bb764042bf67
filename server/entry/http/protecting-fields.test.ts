import assert from 'node:assert/strict';
import { test } from 'node:test';
import { operation } from '../../../contract/operations.ts';
import { refusedFields } from './protecting-fields.ts';
import { fieldPaths } from './schema-walk.ts';

const { body, protectingFields = {} } = operation('createSession');
const knownPaths = body ? fieldPaths(body) : [];

test('every protecting field is a field of the request that it protects', () => {
  for (const id of ['createSession', 'startSession'] as const) {
    const { body: schema, protectingFields: fields = {} } = operation(id);
    assert.ok(Object.keys(fields).length > 0);
    for (const path of Object.keys(fields)) assert.ok(schema && fieldPaths(schema).includes(path), path);
  }
});

test('ignores unknown fields that are neither similar to a protecting field nor inside one', () => {
  const unknown = [
    'keepalive',
    'browserSettings.viewPort',
    'browserSettings.viewport.depth',
    'constructor',
    '__proto__',
  ];
  assert.deepEqual(refusedFields(unknown, protectingFields, knownPaths), []);
});

test('refuses an unknown field that resembles the parent of protecting fields, and suggests the parent', () => {
  assert.deepEqual(refusedFields(['browserSetings'], protectingFields, knownPaths), [
    { path: 'browserSetings', suggestion: 'browserSettings' },
  ]);
});

test('does not refuse a top-level unknown field whose name is longer than any field name', () => {
  assert.deepEqual(refusedFields(['networkPolicy'.repeat(10_000)], protectingFields, knownPaths), []);
});

test('suggests a known field for an unknown field inside a list', () => {
  assert.deepEqual(refusedFields(['proxies[3].sever'], protectingFields, knownPaths), [
    { path: 'proxies[3].sever', suggestion: 'proxies.server' },
  ]);
});

test('refuses an unknown field inside a protecting field, even if the name of the unknown field is very long', () => {
  const path = `proxies[0].${'x'.repeat(1_000)}`;
  assert.deepEqual(refusedFields([path], protectingFields, knownPaths), [{ path }]);
});
