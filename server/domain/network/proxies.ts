// From the proxy rules of a create to the routes of its session: every rule is read, every pool found, before anything
// is started. What comes out holds passwords, and is kept sealed only.
import type { Issue } from '../../../contract/common.ts';
import type { CreateSession } from '../../../contract/sessions.ts';
import type { SessionId } from '../../kit/ids.ts';
import { fault, invalidRequest } from '../faults.ts';
import { memberFor, type Place, type ProxyPool, poolFor } from './pools.ts';

/** A proxy, as it is kept sealed with the session. */
export interface RouteBy {
  readonly name: string;
  readonly scheme: 'http' | 'https' | 'socks5';
  readonly hostname: string;
  readonly port: number;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** The operator named it. */
  readonly trusted: boolean;
}

export interface Route {
  readonly pattern?: string | undefined;
  readonly by: RouteBy | 'direct';
}

export type ProxiesAsked = NonNullable<CreateSession['proxies']>;
type Rule = Exclude<ProxiesAsked, boolean>[number];
type External = Extract<Rule, { type: 'external' }>;

export interface ProxyParts {
  readonly pools: readonly ProxyPool[];
  /** What is wrong with a pattern, in words. */
  readonly patternTrouble: (pattern: string) => string | undefined;
}

export interface Routes {
  readonly routes: readonly Route[];
  /** Of the pool that everything goes to. */
  readonly timeZone?: string | undefined;
}

export function routesOf(asked: ProxiesAsked, session: SessionId, parts: ProxyParts): Routes {
  const rules: readonly Rule[] = asked === true ? [{ type: 'browserbase' }] : asked === false ? [] : asked;
  refuseBadPatterns(rules, parts);
  const pooled = rules.map((rule, index) => (rule.type === 'browserbase' ? demandPool(rule, index, parts) : undefined));
  const routes = rules.map((rule, index): Route => {
    const pool = pooled[index];
    const pattern = rule.domainPattern === undefined ? {} : { pattern: rule.domainPattern };
    if (pool) return { ...pattern, by: memberFor(pool, session) };
    return { ...pattern, by: rule.type === 'external' ? external(rule, index) : 'direct' };
  });
  const first = rules[0]?.domainPattern === undefined ? pooled[0] : undefined;
  return { routes, timeZone: first?.timeZone };
}

function refuseBadPatterns(rules: readonly Rule[], { patternTrouble }: ProxyParts): void {
  const issues: Issue[] = rules.flatMap(({ domainPattern }, index) => {
    const trouble = domainPattern === undefined ? undefined : patternTrouble(domainPattern);
    const message = `is no pattern that can be used: ${trouble}. Patterns are regular expressions on the host name, in RE2 syntax: no look-around, no back-references`;
    return trouble === undefined ? [] : [{ path: `proxies.${index}.domainPattern`, message }];
  });
  if (issues.length > 0) throw invalidRequest(issues);
}

/** Going direct instead would show the caller's own address. */
function demandPool(rule: Extract<Rule, { type: 'browserbase' }>, index: number, { pools }: ProxyParts): ProxyPool {
  const pool = poolFor(pools, rule.geolocation);
  if (pool) return pool;
  const wanted = rule.geolocation ? ` for ${wordsOf(rule.geolocation)}` : '';
  throw fault('feature_unavailable', `The operator of this installation has not configured proxies${wanted}.`, {
    advice: 'Use your own proxy (type external), or omit proxies. The session was not created.',
    details: { field: `proxies.${index}` },
  });
}

const wordsOf = ({ country, state, city }: Place): string =>
  [city, state, country.toUpperCase()].filter(word => word !== undefined).join(', ');

const PORTS = { http: 80, https: 443, socks5: 1080 } as const;
const SOCKS_BYTES_MAX = 255;

function external({ server, username, password }: External, index: number): RouteBy {
  const read = readServer(server);
  if (typeof read === 'string') throw invalidRequest([{ path: `proxies.${index}.server`, message: read }]);
  if (read.scheme === 'socks5' && [username, password].some(text => Buffer.byteLength(text ?? '') > SOCKS_BYTES_MAX))
    throw invalidRequest([
      { path: `proxies.${index}`, message: `has a name or password of more than ${SOCKS_BYTES_MAX} bytes` },
    ]);
  const user = username === undefined && password === undefined ? {} : { username, password };
  return { name: `proxies.${index}`, ...read, ...user, trusted: false };
}

/** Its parts, or what is wrong with it. */
export function readServer(text: string): Pick<RouteBy, 'scheme' | 'hostname' | 'port'> | string {
  const [, scheme, rest] = /^(https?|socks5):\/\/([^/?#\s]+)\/?$/i.exec(text) ?? [];
  if (!scheme || !rest)
    return 'is no proxy address; expected http://host:port, https://host:port or socks5://host:port';
  if (rest.includes('@')) return 'carries a user name; give it as username and password, where it is kept secret';
  // Hosts of schemes that the URL standard does not know are not read as hosts.
  const url = URL.parse(`http://${rest}/`);
  const known = scheme.toLowerCase() as keyof typeof PORTS; // the pattern has spoken
  const hostname = url?.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (!url || !hostname) return 'has no host name that can be read';
  const [, written] = /:(\d+)$/.exec(rest) ?? [];
  const port = written === undefined ? PORTS[known] : Number(written);
  if (port < 1 || port > 65535) return 'has no port from 1 to 65535';
  return { scheme: known, hostname, port };
}
