import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFault } from '../../kit/fault.ts';
import { isFormType, readFormBody } from './form-body.ts';

test('reads parameters, and omits empty parameters', () => {
  assert.deepEqual(readFormBody('a=1&b=x+y%26z&c=&d'), { a: '1', b: 'x y&z' });
  assert.deepEqual(readFormBody(''), {});
});

test('refuses repeated parameters, too many parameters and values that are too large', () => {
  for (const text of ['a=1&a=1', '__proto__=x', Array.from({ length: 33 }, (_, index) => `p${index}=1`).join('&')])
    assert.throws(
      () => readFormBody(text),
      error => isFault(error, 'invalid_request'),
      text.slice(0, 40),
    );
  assert.throws(
    () => readFormBody(`a=${'é'.repeat(5000)}`),
    error => isFault(error, 'payload_too_large'),
  );
});

test('accepts only the form content type, with or without parameters', () => {
  assert.ok(isFormType('application/x-www-form-urlencoded'));
  assert.ok(isFormType('Application/X-WWW-Form-Urlencoded; charset=utf-8'));
  for (const type of [undefined, 'application/json', 'multipart/form-data; boundary=x']) assert.ok(!isFormType(type));
});
