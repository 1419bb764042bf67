import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalJson, digestOf, isInteroperable } from './canonical-json.ts';

test('serializes the examples in RFC 8785 as the RFC requires', () => {
  // The examples in RFC 8785, sections 3.2.2 and 3.2.3 (the order of members).
  const example = {
    numbers: [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 0.000000000000000000000000001, -0],
    string: '\u20ac$\u000f\u000aA\'\u0042\u0022\u005c\\"/',
    literals: [null, true, false],
  };
  assert.equal(
    canonicalJson(example),
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27,0],' +
      '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  );
  const names = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, '\u00f6': 7 };
  assert.deepEqual(Object.values(JSON.parse(canonicalJson(names))).length, 7);
  assert.equal(canonicalJson(names), '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}');
});

test('equal values have equal digests regardless of the order of properties, and undefined properties are ignored', () => {
  assert.equal(digestOf({ a: 1, b: [{ d: 1, c: undefined }] }), digestOf({ b: [{ d: 1 }], a: 1 }));
  assert.match(digestOf({}), /^sha256:[0-9a-f]{64}$/);
});

test('refuses values that are not I-JSON', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, '\ud800', { '\udc00': 1 }, undefined, 1n, () => 1])
    assert.throws(() => canonicalJson(value));
});

test('isInteroperable accepts only values that every JSON parser reads unchanged', () => {
  for (const value of [null, true, 1.5, -0, 2 ** 53 - 1, 'text', [{ a: ['\ud83d\ude00'] }]])
    assert.ok(isInteroperable(value));
  for (const value of [2 ** 53, -(2 ** 53), Number.POSITIVE_INFINITY, '\ud800', { '\udc00': 1 }, [{ a: [1e21] }]])
    assert.ok(!isInteroperable(value));
});
