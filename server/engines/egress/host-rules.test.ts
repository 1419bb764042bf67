import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostJudge } from './host-rules.ts';

const judged = (policy: Parameters<typeof hostJudge>[0], hosts: readonly string[]): readonly string[] =>
  hosts.filter(hostJudge(policy));

test('an entry stands for its name and what is below it, and for nothing that only ends like it', () => {
  const hosts = ['a.test', 'www.a.test', 'x.www.a.test', 'nota.test', 'a.test.b', 'test', ''];
  const policy = { allow: ['a.test'], deny: [], default: 'deny' } as const;
  assert.deepEqual(judged(policy, hosts), ['a.test', 'www.a.test', 'x.www.a.test']);
});

test('the entry that says most decides; of the same name, the one that denies', () => {
  const policy = {
    allow: ['a.test', 'in.out.a.test', 'b.test'],
    deny: ['out.a.test', 'b.test'],
    default: 'deny',
  } as const;
  assert.deepEqual(judged(policy, ['a.test', 'out.a.test', 'x.out.a.test', 'in.out.a.test', 'b.test']), [
    'a.test',
    'in.out.a.test',
  ]);
});

test('what no entry names follows the default', () => {
  assert.deepEqual(judged({ allow: [], deny: ['a.test'], default: 'allow' }, ['a.test', 'b.test']), ['b.test']);
  assert.deepEqual(judged({ allow: ['a.test'], deny: [], default: 'deny' }, ['a.test', 'b.test']), ['a.test']);
});

test('an address is met by itself only', () => {
  const policy = { allow: ['93.184.216.34', '2606:2800:220:1::9'], deny: [], default: 'deny' } as const;
  const hosts = ['93.184.216.34', '93.184.216.3', '2606:2800:220:1::9', '2606:2800:220:1::8'];
  assert.deepEqual(judged(policy, hosts), ['93.184.216.34', '2606:2800:220:1::9']);
});
