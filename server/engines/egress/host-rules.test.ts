import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostMatcher } from './host-rules.ts';

const allowedOf = (policy: Parameters<typeof hostMatcher>[0], hosts: readonly string[]): readonly string[] =>
  hosts.filter(hostMatcher(policy));

test('matches a name and its subdomains, but not other names with the same ending', () => {
  const hosts = ['a.test', 'www.a.test', 'x.www.a.test', 'nota.test', 'a.test.b', 'test', ''];
  const policy = { allow: ['a.test'], deny: [], default: 'deny' } as const;
  assert.deepEqual(allowedOf(policy, hosts), ['a.test', 'www.a.test', 'x.www.a.test']);
});

test('applies the most specific entry, and prefers deny to allow for the same name', () => {
  const policy = {
    allow: ['a.test', 'in.out.a.test', 'b.test'],
    deny: ['out.a.test', 'b.test'],
    default: 'deny',
  } as const;
  assert.deepEqual(allowedOf(policy, ['a.test', 'out.a.test', 'x.out.a.test', 'in.out.a.test', 'b.test']), [
    'a.test',
    'in.out.a.test',
  ]);
});

test('uses the default for host names that match no entry', () => {
  assert.deepEqual(allowedOf({ allow: [], deny: ['a.test'], default: 'allow' }, ['a.test', 'b.test']), ['b.test']);
  assert.deepEqual(allowedOf({ allow: ['a.test'], deny: [], default: 'deny' }, ['a.test', 'b.test']), ['a.test']);
});

test('matches an IP address only with an entry for exactly that address', () => {
  const policy = { allow: ['93.184.216.34', '2606:2800:220:1::9'], deny: [], default: 'deny' } as const;
  const hosts = ['93.184.216.34', '93.184.216.3', '2606:2800:220:1::9', '2606:2800:220:1::8'];
  assert.deepEqual(allowedOf(policy, hosts), ['93.184.216.34', '2606:2800:220:1::9']);
});
