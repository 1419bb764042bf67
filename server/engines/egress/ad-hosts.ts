// A list of hosts that serve advertisements, as such lists are written: hosts files, plain names, and those rules of
// Adblock Plus that are about whole hosts (`||ads.test^`, `@@||good.test^`). Everything else in it is left out: a proxy
// sees hosts, and neither paths nor which page asks. Rules are read by a library, hosts and names are one word each.
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import { type HostJudge, hostJudge } from './host-rules.ts';

export interface AdHosts {
  /** Whether a host serves advertisements. */
  readonly blocks: HostJudge;
  readonly rules: number;
  /** Lines that say something which cannot be done here. */
  readonly leftOut: number;
}

const COMMENT = /^\s*(?:[!#[]|$)/;
/** A rule of paths and elements may hold a `#`; behind a blank it begins a remark. */
const REMARK = /\s+#.*$/;
const SINK = /^(?:0\.0\.0\.0|127\.0\.0\.1|::1?)\s+/;
/** Of the machine, in every hosts file. */
const OWN_NAMES = /^(?:localhost|localhost\.localdomain|local|broadcasthost|ip6-.*)$/;

interface Named {
  readonly except: boolean;
  readonly names: readonly string[];
}

type ReadRule = (line: string) => Named | undefined;

export async function readAdHosts(text: string): Promise<AdHosts> {
  const readRule = await ruleReader();
  const deny: string[] = [];
  const allow: string[] = [];
  let leftOut = 0;
  for (const line of text.split('\n')) {
    if (COMMENT.test(line)) continue;
    const found = namedBy(line.trim().replace(REMARK, ''), readRule);
    if (!found) leftOut += 1;
    else for (const name of found.names) (found.except ? allow : deny).push(name);
  }
  const reached = hostJudge({ allow, deny, default: 'allow' });
  return { blocks: hostname => !reached(hostname), rules: deny.length + allow.length, leftOut };
}

function namedBy(line: string, readRule: ReadRule): Named | undefined {
  if (/^(?:@@)?\|\|/.test(line)) return readRule(line);
  const words = line.replace(SINK, '').split(/\s+/);
  if (SINK.test(line)) return named(words.filter(name => !OWN_NAMES.test(name) && isIP(name) === 0));
  return words.length === 1 ? named(words) : undefined;
}

function named(texts: readonly string[], except = false): Named | undefined {
  const names = texts.map(hostIn);
  return names.includes(undefined) ? undefined : { except, names: names.filter(name => name !== undefined) };
}

/** Loaded where there is a list: 17 MiB that other installations do not need. */
async function ruleReader(): Promise<ReadRule> {
  const { NetworkFilter } = await import('@ghostery/adblocker');
  return line => {
    const rule = NetworkFilter.parse(withAsciiNames(line));
    if (!rule?.isHostnameAnchor() || rule.getFilter() !== '' || rule.isBadFilter()) return undefined;
    const forSomeOnly =
      !rule.firstParty() || !rule.thirdParty() || !rule.fromDocument() || rule.hasDomains() || rule.denyallow;
    // What changes an answer, or a part of it, blocks nothing.
    if (forSomeOnly || rule.optionValue !== undefined || rule.isElemHide()) return undefined;
    return named([rule.getHostname()], rule.isException());
  };
}

/** The library knows names as they are asked for, in punycode. */
const withAsciiNames = (line: string): string =>
  line.replace(/[\p{L}\p{N}\p{M}._-]*[^\p{ASCII}][\p{L}\p{N}\p{M}._-]*/gu, name => domainToASCII(name) || name);

const WRITTEN = /^[\p{L}\p{N}\p{M}_-]+(?:\.[\p{L}\p{N}\p{M}_-]+)+\.?$/u;

const hostIn = (text: string): string | undefined =>
  WRITTEN.test(text) ? URL.parse(`http://${text}/`)?.hostname.replace(/\.$/, '') : undefined;
