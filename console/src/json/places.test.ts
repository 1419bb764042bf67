import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lineNumberOf, offsetOf, parseJson, partsOf } from './places.ts';

const parseOrFail = (text: string) => {
  const outcome = parseJson(text);
  return 'places' in outcome ? outcome : assert.fail(outcome.message);
};

test('offsetOf returns the offset of the value at a path, or of the nearest enclosing value', () => {
  const text = '{\n  "steps": [\n    {"do": "goto"},\n    {"do": "fill", "a\\"b": [1, 2]}\n  ]\n}';
  const json = parseOrFail(text);
  assert.deepEqual(json.value, JSON.parse(text));
  for (const [path, expectedStart] of [
    ['', '{\n'],
    ['steps[1].do', '"fill"'],
    ['steps.1.a"b.1', '2]'],
    ['steps[0].selector', '{"do": "goto"'],
    ['nothing.here', '{\n'],
  ] as const)
    assert.ok(text.slice(offsetOf(json, partsOf(path))).startsWith(expectedStart), path);
  assert.equal(lineNumberOf(text, offsetOf(json, partsOf('steps[1].do'))), 4);
});

test('parseJson reports the position of a syntax error and what was expected there', () => {
  for (const [text, offset, message] of [
    ['', 0, /a value/],
    ['{"a": 1,}', 8, /a name in double quotes/],
    ['{"a" 1}', 5, /:/],
    ['{"a": 1 "b": 2}', 8, /, or }/],
    ['[1, 2', 5, /, or ]/],
    ["{'a': 1}", 1, /a name in double quotes, or }/],
    ['{"a": "x\n"}', 6, /ends with "/],
    ['{} {}', 3, /after the value/],
    ['[01]', 2, /, or ]/],
    ['['.repeat(300), 201, /nested/],
  ] as const) {
    const outcome = parseJson(text);
    if ('places' in outcome) assert.fail(text);
    assert.equal(outcome.offset, offset, text);
    assert.match(outcome.message, message, text);
  }
});

test('parseJson accepts exactly the strings that JSON.parse accepts', () => {
  const texts = [
    '1',
    '-0.5e+3',
    'true',
    'nul',
    '"\\u00e9"',
    '"\\x"',
    '[]',
    '{}',
    '[,]',
    '{"a":[{"b":null}]}',
    '+1',
    '1.',
  ];
  for (const text of texts) {
    const isJson = ((): boolean => {
      try {
        JSON.parse(text);
        return true;
      } catch {
        return false;
      }
    })();
    assert.equal('places' in parseJson(text), isJson, text);
  }
});
