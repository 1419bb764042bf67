import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAdHosts } from './ad-hosts.ts';

const LIST = `! Title: a list
[Adblock Plus 2.0]
# a comment
127.0.0.1 localhost
::1 ip6-loopback
0.0.0.0 0.0.0.0
0.0.0.0 hosts.test other.test # two
plain.test
||anchored.test^
||important.test^$important
||bücher.test^
@@||good.anchored.test^
||paths.test^/ads/*
||third.test^$third-party
||wild*.test^
example.test##.banner
/banner[0-9]+/
`;

test('reads host names from every list format, with subdomains and exceptions', async () => {
  const { isAdHost } = await readAdHosts(LIST);
  const hosts = ['hosts.test', 'a.other.test', 'plain.test', 'x.anchored.test', 'important.test', 'xn--bcher-kva.test'];
  for (const host of hosts) assert.ok(isAdHost(host), host);
  const allowedHosts = ['good.anchored.test', 'b.good.anchored.test', 'nothosts.test', 'localhost', 'test', '0.0.0.0'];
  for (const host of allowedHosts) assert.ok(!isAdHost(host), host);
});

test('skips and counts rules that do not apply to a whole host name', async () => {
  const { isAdHost, rules, skippedLines } = await readAdHosts(LIST);
  for (const host of ['paths.test', 'third.test', 'wild.test', 'example.test']) assert.ok(!isAdHost(host), host);
  assert.deepEqual({ rules, skippedLines }, { rules: 7, skippedLines: 5 });
});

test('accepts a rule only if the rule has no restrictions', async () => {
  const wholeHostRules = ['||a.test^', '||a.test', '||a.test^|', '||A.Test^', '||a.test^$all', '||a.test^$document'];
  for (const line of wholeHostRules) assert.ok((await readAdHosts(line)).isAdHost('x.a.test'), line);
  const restrictedRules = [
    ...['||a.test^$script', '||a.test^$domain=b.test', '||a.test^$~third-party', '||a.test^$popup'],
    ...[
      '||a.test^$csp=script-src none',
      '||a.test^$removeparam=x',
      '||a.test^$redirect=noop.js',
      '||a.test^$badfilter',
    ],
    ...['||a.test^$denyallow=b.test', '||a.test:8080^', '||a.test^*', '||a.*^', '||*.a.test^', '||test^', '||', '@@||'],
    ...['|http://a.test/', '@@||a.test^', 'a.test,b.test', 'a test', '/a.test/'],
  ];
  for (const line of restrictedRules) assert.ok(!(await readAdHosts(line)).isAdHost('a.test'), line);
});

test('ignores an exception that has restrictions', async () => {
  const { isAdHost } = await readAdHosts('||a.test^\n@@||a.test^$script\n@@||b.a.test^');
  assert.deepEqual([isAdHost('a.test'), isAdHost('b.a.test')], [true, false]);
});
