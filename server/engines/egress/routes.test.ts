import assert from 'node:assert/strict';
import { test } from 'node:test';
import { patternError, type RouteRule, routes } from './routes.ts';
import type { Upstream } from './upstream.ts';

const upstream = (name: string): Upstream => ({ name, scheme: 'http', hostname: 'p.test', port: 1, trusted: false });

const [first, second] = [upstream('first'), upstream('second')];

const routesOf = (rules: readonly RouteRule[], ...hosts: readonly string[]): ReadonlyArray<string | undefined> =>
  hosts.map(host => routes(rules)(host)?.name);

test('connects directly if no rule matches', () => {
  assert.deepEqual(routesOf([], 'a.test'), [undefined]);
  assert.deepEqual(routesOf([{ pattern: '^b\\.test$', by: first }], 'a.test'), [undefined]);
});

test('uses the first matching rule, even if it is direct', () => {
  const rules: RouteRule[] = [
    { pattern: '^a\\.test$', by: 'direct' },
    { pattern: 'test$', by: first },
    { by: second },
    { pattern: '.', by: first },
  ];
  assert.deepEqual(routesOf(rules, 'a.test', 'b.test', 'b.example'), [undefined, 'first', 'second']);
});

test('matches a pattern anywhere in the host, ignoring case', () => {
  const rules: RouteRule[] = [{ pattern: 'EXAMPLE', by: first }];
  assert.deepEqual(routesOf(rules, 'example.com', 'an.example.test', 'exampl.test'), ['first', 'first', undefined]);
});

test('returns an error message for patterns that RE2 does not support', () => {
  for (const pattern of ['(?=a)b', '(?!a)b', '(?<=a)b', '(a)\\1', '(a', '[', '*', 'a{2000}'])
    assert.match(patternError(pattern) ?? '', /\w/, pattern);
  for (const pattern of ['', '^a$', '(a|b)+', '\\p{L}', '(?i)x', '[a-z]{1,63}'])
    assert.equal(patternError(pattern), undefined, pattern);
});

test('throws for a rule with an invalid pattern', () => {
  assert.throws(() => routes([{ pattern: '(a', by: first }]));
});
