import assert from 'node:assert/strict';
import { test } from 'node:test';
import { expand, readTemplate } from './url-template.ts';

test('reads the host and the variables of a template', () => {
  const plainTemplate = readTemplate('https://Bücher.example/x'.replace('ü', 'u'));
  assert.deepEqual(Object(plainTemplate).host, 'bucher.example');
  const template = readTemplate('https://api.shop.example:8443/orders/{orderId}?q={text}');
  assert.deepEqual(template, {
    ...{ host: 'api.shop.example:8443', isEncrypted: true },
    ...{ pathVariables: ['orderId'], queryVariables: ['text'] },
  });
});

for (const template of [
  'https://{host}/x',
  'https://api.{host}.example/x',
  '{scheme}://api.example/x',
  'https://api.example:{port}/x',
  'https://{user}@api.example/x',
  'https://me:pass@api.example/x',
  'https://api.example/x#{y}',
  'https://api.example\\@other.example/',
  'https://api.example/../x',
  'https://api.example/%2e%2E/x',
  'https://api.example/{a b}',
  'https://api.example/{a}}',
  'https:///x',
  'https://api.example/a b',
  'ftp://api.example/x',
  'javascript:alert(1)',
  '//api.example/x',
  'https://api.example/x\r\nHost: other',
])
  test(`refuses the template ${JSON.stringify(template)}`, () => {
    assert.equal(typeof readTemplate(template), 'string');
  });

test('a value cannot change the host or add a path segment', () => {
  const template = 'https://api.example/orders/{id}/cancel?note={note}';
  const values = [
    '@evil.example',
    '//evil.example',
    '\\evil',
    '?x=1',
    '#x',
    'a/b',
    '%2e%2e',
    '\r\nHost: evil',
    '{id}',
    'ü',
  ];
  for (const value of values) {
    const expansion = expand(template, () => value, [['more', value]]);
    if (!('url' in expansion)) return assert.fail(expansion.problem);
    const url = new URL(expansion.url);
    assert.equal(url.href, expansion.url);
    assert.deepEqual([url.origin, url.pathname.split('/').length, url.hash], ['https://api.example', 4, '']);
    assert.deepEqual([url.searchParams.get('note'), url.searchParams.get('more')], [value, value]);
    assert.equal(decodeURIComponent(url.pathname.split('/')[2] ?? ''), value);
  }
  for (const value of ['.', '..', '', undefined])
    assert.ok('problem' in expand(template, () => value, []), String(value));
});
