import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAdHosts } from './ad-hosts.ts';

const LIST = `! Title: a list
[Adblock Plus 2.0]
# a remark
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

test('whole hosts are taken from every form, with their subdomains and exceptions', () => {
  const { blocks } = readAdHosts(LIST);
  const hosts = ['hosts.test', 'a.other.test', 'plain.test', 'x.anchored.test', 'important.test', 'xn--bcher-kva.test'];
  for (const host of hosts) assert.ok(blocks(host), host);
  const spared = ['good.anchored.test', 'b.good.anchored.test', 'nothosts.test', 'localhost', 'test', '0.0.0.0'];
  for (const host of spared) assert.ok(!blocks(host), host);
});

test('what is no rule about a whole host is left out and counted', () => {
  const { blocks, rules, leftOut } = readAdHosts(LIST);
  for (const host of ['paths.test', 'third.test', 'wild.test', 'example.test']) assert.ok(!blocks(host), host);
  assert.deepEqual({ rules, leftOut }, { rules: 7, leftOut: 5 });
});
