import assert from 'node:assert/strict';
import { test } from 'node:test';
import { patternError, type RouteRule, routes } from './routes.ts';
import type { Upstream } from './upstream.ts';

const upstream = (name: string): Upstream => ({ name, scheme: 'http', hostname: 'p.test', port: 1, trusted: false });

const [first, second] = [upstream('first'), upstream('second')];

const ways = (rules: readonly RouteRule[], ...hosts: readonly string[]): ReadonlyArray<string | undefined> =>
  hosts.map(host => routes(rules)(host)?.name);

test('no rules, or none that fits: direct', () => {
  assert.deepEqual(ways([], 'a.test'), [undefined]);
  assert.deepEqual(ways([{ pattern: '^b\\.test$', by: first }], 'a.test'), [undefined]);
});

test('the first that fits decides, also where it says direct', () => {
  const rules: RouteRule[] = [
    { pattern: '^a\\.test$', by: 'direct' },
    { pattern: 'test$', by: first },
    { by: second },
    { pattern: '.', by: first },
  ];
  assert.deepEqual(ways(rules, 'a.test', 'b.test', 'b.example'), [undefined, 'first', 'second']);
});

test('a pattern is found anywhere in the host, in any case', () => {
  const rules: RouteRule[] = [{ pattern: 'EXAMPLE', by: first }];
  assert.deepEqual(ways(rules, 'example.com', 'an.example.test', 'exampl.test'), ['first', 'first', undefined]);
});

test('what cannot be run in linear time is no pattern, and is told in words', () => {
  for (const pattern of ['(?=a)b', '(?!a)b', '(?<=a)b', '(a)\\1', '(a', '[', '*', 'a{2000}'])
    assert.match(patternError(pattern) ?? '', /\w/, pattern);
  for (const pattern of ['', '^a$', '(a|b)+', '\\p{L}', '(?i)x', '[a-z]{1,63}'])
    assert.equal(patternError(pattern), undefined, pattern);
});

test('a rule that cannot be compiled is an error, not a rule that fits nothing', () => {
  assert.throws(() => routes([{ pattern: '(a', by: first }]));
});
