import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RE2JS } from 're2js';
import { PATTERN_INSTRUCTIONS_MAX, patternErrors, type RouteRule, routerOf } from './routes.ts';
import type { Upstream } from './upstream.ts';

const upstream = (name: string): Upstream => ({ name, scheme: 'http', hostname: 'p.test', port: 1, trusted: false });

const [first, second] = [upstream('first'), upstream('second')];

const routesOf = (rules: readonly RouteRule[], ...hosts: readonly string[]): ReadonlyArray<string | undefined> =>
  hosts.map(host => routerOf(rules)(host)?.name);

test('connects directly if no rule matches', () => {
  assert.deepEqual(routesOf([], 'a.test'), [undefined]);
  assert.deepEqual(routesOf([{ pattern: '^b\\.test$', by: first }], 'a.test'), [undefined]);
});

test('uses the first matching rule, even if that rule requires a direct connection', () => {
  const rules: RouteRule[] = [
    { pattern: '^a\\.test$', by: 'direct' },
    { pattern: 'test$', by: first },
    { by: second },
    { pattern: '.', by: first },
  ];
  assert.deepEqual(routesOf(rules, 'a.test', 'b.test', 'b.example'), [undefined, 'first', 'second']);
});

test('matches a pattern anywhere in the host name, ignoring case', () => {
  const rules: RouteRule[] = [{ pattern: 'EXAMPLE', by: first }];
  assert.deepEqual(routesOf(rules, 'example.com', 'an.example.test', 'exampl.test'), ['first', 'first', undefined]);
});

test('returns an error message for patterns that RE2 does not support', () => {
  for (const pattern of ['(?=a)b', '(?!a)b', '(?<=a)b', '(a)\\1', '(a', '[', '*', 'a{2000}'])
    assert.match(patternErrors([pattern])[0] ?? '', /\w/, pattern);
  for (const pattern of ['', '^a$', '(a|b)+', '\\p{L}', '(?i)x', '[a-z]{1,63}'])
    assert.deepEqual(patternErrors([pattern]), [undefined], pattern);
});

test('refuses patterns with too many instructions, and does not compile a pattern if that would take too long', t => {
  const compile = t.mock.method(RE2JS, 'compile');
  const largePatterns = [
    '(\\S?){1000}'.repeat(20),
    `(${'a'.repeat(100)})\\Q\\E{1000}`,
    '((\\S?a{9}){30}){30}',
    '(\\pL{2,1000}){5}',
  ];
  for (const pattern of largePatterns)
    assert.match(patternErrors([pattern])[0] ?? '', /more than 1000 instructions/, pattern);
  assert.equal(compile.mock.callCount(), 0);
  assert.match(patternErrors(['[a-z]{1,1000}'])[0] ?? '', /more than 1000 instructions/);
  assert.equal(compile.mock.callCount(), 1);
});

test('limits the total number of instructions of all patterns of a session', () => {
  const pattern = '[a-z]{1,63}\\.example$';
  const fittingCount = Math.floor(PATTERN_INSTRUCTIONS_MAX / RE2JS.compile(pattern).programSize());
  const errors = patternErrors([undefined, ...Array.from({ length: fittingCount + 2 }, () => pattern)]);
  assert.deepEqual(
    errors.map(error => error !== undefined),
    [...Array.from({ length: fittingCount + 1 }, () => false), true, false],
  );
});

test('throws for a rule with an invalid pattern', () => {
  assert.throws(() => routerOf([{ pattern: '(a', by: first }]));
});
