// Reads a list of ad hosts. The lines may be entries of hosts files, plain names, or Adblock Plus rules for whole hosts
// (`||ads.test^`, `@@||good.test^`). Other rules are skipped, because the proxy sees neither the path of a request nor
// the page that sent it. A library parses the Adblock Plus rules.
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import { type HostMatcher, hostMatcher } from './host-rules.ts';

export interface AdHosts {
  /** Whether a host serves advertisements. */
  readonly isAdHost: HostMatcher;
  readonly rules: number;
  /** The number of lines that were skipped because they do not concern whole hosts. */
  readonly skippedLines: number;
}

const COMMENT_PATTERN = /^\s*(?:[!#[]|$)/;
/** A `#` after a space begins a comment. Elsewhere a `#` may be part of a rule. */
const TRAILING_COMMENT_PATTERN = /\s+#.*$/;
const SINK_ADDRESS_PATTERN = /^(?:0\.0\.0\.0|127\.0\.0\.1|::1?)\s+/;
/** Names of the machine itself, which every hosts file contains. */
const OWN_NAME_PATTERN = /^(?:localhost|localhost\.localdomain|local|broadcasthost|ip6-.*)$/;

interface HostRuleLine {
  readonly isAllowRule: boolean;
  readonly names: readonly string[];
}

type ReadRule = (line: string) => HostRuleLine | undefined;

export async function readAdHosts(text: string): Promise<AdHosts> {
  const readRule = await ruleReader();
  const deny: string[] = [];
  const allow: string[] = [];
  let skippedLines = 0;
  for (const line of text.split('\n')) {
    if (COMMENT_PATTERN.test(line)) continue;
    const parsedRule = parseLine(line.trim().replace(TRAILING_COMMENT_PATTERN, ''), readRule);
    if (!parsedRule) skippedLines += 1;
    else for (const name of parsedRule.names) (parsedRule.isAllowRule ? allow : deny).push(name);
  }
  const isAllowed = hostMatcher({ allow, deny, default: 'allow' });
  return { isAdHost: hostname => !isAllowed(hostname), rules: deny.length + allow.length, skippedLines };
}

function parseLine(line: string, readRule: ReadRule): HostRuleLine | undefined {
  if (/^(?:@@)?\|\|/.test(line)) return readRule(line);
  const words = line.replace(SINK_ADDRESS_PATTERN, '').split(/\s+/);
  if (SINK_ADDRESS_PATTERN.test(line))
    return ruleLineOf(words.filter(name => !OWN_NAME_PATTERN.test(name) && isIP(name) === 0));
  return words.length === 1 ? ruleLineOf(words) : undefined;
}

function ruleLineOf(texts: readonly string[], isAllowRule = false): HostRuleLine | undefined {
  const names = texts.map(parseHost);
  return names.includes(undefined) ? undefined : { isAllowRule, names: names.filter(name => name !== undefined) };
}

/** Imports the library only if there is a list, because the library takes 17 MiB of memory. */
async function ruleReader(): Promise<ReadRule> {
  const { NetworkFilter } = await import('@ghostery/adblocker');
  return line => {
    const rule = NetworkFilter.parse(withAsciiNames(line));
    if (!rule?.isHostnameAnchor() || rule.getFilter() !== '' || rule.isBadFilter()) return undefined;
    const isConditional =
      !rule.firstParty() || !rule.thirdParty() || !rule.fromDocument() || rule.hasDomains() || rule.denyallow;
    // Rules that modify a response do not block the host.
    if (isConditional || rule.optionValue !== undefined || rule.isElemHide()) return undefined;
    return ruleLineOf([rule.getHostname()], rule.isException());
  };
}

/** The library expects names in punycode. */
const withAsciiNames = (line: string): string =>
  line.replace(/[\p{L}\p{N}\p{M}._-]*[^\p{ASCII}][\p{L}\p{N}\p{M}._-]*/gu, name => domainToASCII(name) || name);

const HOST_NAME_PATTERN = /^[\p{L}\p{N}\p{M}_-]+(?:\.[\p{L}\p{N}\p{M}_-]+)+\.?$/u;

const parseHost = (text: string): string | undefined =>
  HOST_NAME_PATTERN.test(text) ? URL.parse(`http://${text}/`)?.hostname.replace(/\.$/, '') : undefined;
