// A list of hosts that serve advertisements, as such lists are written: hosts files, plain names, and those rules of
// Adblock Plus that are about whole hosts (`||ads.test^`, `@@||good.test^`). Everything else in it is left out: a proxy
// sees hosts, and neither paths nor which page asks.
import { isIP } from 'node:net';
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
const ANCHORED = /^(@@)?\|\|([^/^$*|]+)\^?(?:\$(?:all|important|document|popup,?)*)?$/;
const SINK = /^(?:0\.0\.0\.0|127\.0\.0\.1|::1?)\s+/;
/** Of the machine, in every hosts file. */
const OWN_NAMES = /^(?:localhost|localhost\.localdomain|local|broadcasthost|ip6-.*)$/;

export function readAdHosts(text: string): AdHosts {
  const deny: string[] = [];
  const allow: string[] = [];
  let leftOut = 0;
  for (const line of text.split('\n')) {
    if (COMMENT.test(line)) continue;
    const found = ruleOf(line.trim().replace(REMARK, ''));
    if (!found) leftOut += 1;
    else for (const name of found.names) (found.except ? allow : deny).push(name);
  }
  const reached = hostJudge({ allow, deny, default: 'allow' });
  return { blocks: hostname => !reached(hostname), rules: deny.length + allow.length, leftOut };
}

function ruleOf(line: string): { except: boolean; names: readonly string[] } | undefined {
  const [, except, anchored] = ANCHORED.exec(line) ?? [];
  if (anchored !== undefined) return named(except !== undefined, [anchored]);
  const names = line.replace(SINK, '').split(/\s+/);
  if (SINK.test(line))
    return named(
      false,
      names.filter(name => !OWN_NAMES.test(name) && isIP(name) === 0),
    );
  return names.length === 1 ? named(false, names) : undefined;
}

function named(except: boolean, texts: readonly string[]): { except: boolean; names: readonly string[] } | undefined {
  const names = texts.map(hostIn);
  return names.includes(undefined) ? undefined : { except, names: names.filter(name => name !== undefined) };
}

const WRITTEN = /^[\p{L}\p{N}\p{M}_-]+(?:\.[\p{L}\p{N}\p{M}_-]+)+\.?$/u;

const hostIn = (text: string): string | undefined =>
  WRITTEN.test(text) ? URL.parse(`http://${text}/`)?.hostname.replace(/\.$/, '') : undefined;
