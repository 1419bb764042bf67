// Converts the proxy rules of a create request into the routes of its session. Before anything is started, all rules
// are validated, and a pool is found for each rule that needs one. Routes contain passwords, so they are stored only in
// encrypted form.
import type { Issue } from '../../../contract/common.ts';
import type { CreateSession } from '../../../contract/sessions.ts';
import type { SessionId } from '../../kit/ids.ts';
import { fault, invalidRequest } from '../faults.ts';
import { type Place, type ProxyPool, poolFor, proxyFor, type StoredProxy } from './pools.ts';

export interface Route {
  readonly pattern?: string | undefined;
  readonly by: StoredProxy | 'direct';
}

export type RequestedProxies = NonNullable<CreateSession['proxies']>;
type Rule = Exclude<RequestedProxies, boolean>[number];
type ExternalRule = Extract<Rule, { type: 'external' }>;

export interface ProxyParts {
  readonly pools: readonly ProxyPool[];
  /** Returns the problem with each pattern of a session, or undefined for a valid pattern. */
  readonly patternErrors: (patterns: ReadonlyArray<string | undefined>) => ReadonlyArray<string | undefined>;
}

export interface Routes {
  readonly routes: readonly Route[];
  /** If all connections go through one pool, the time zone of that pool. */
  readonly timeZone?: string | undefined;
}

export function routesOf(requestedProxies: RequestedProxies, session: SessionId, parts: ProxyParts): Routes {
  const rules: readonly Rule[] =
    requestedProxies === true ? [{ type: 'browserbase' }] : requestedProxies === false ? [] : requestedProxies;
  assertValidPatterns(rules, parts);
  const poolByRule = rules.map((rule, index) =>
    rule.type === 'browserbase' ? requirePool(rule, index, parts) : undefined,
  );
  const routes = rules.map((rule, index): Route => {
    const pool = poolByRule[index];
    const pattern = rule.domainPattern === undefined ? {} : { pattern: rule.domainPattern };
    if (pool) return { ...pattern, by: proxyFor(pool, session) };
    return { ...pattern, by: rule.type === 'external' ? externalProxy(rule, index) : 'direct' };
  });
  const onlyPool = rules[0]?.domainPattern === undefined ? poolByRule[0] : undefined;
  return { routes, timeZone: onlyPool?.timeZone };
}

function assertValidPatterns(rules: readonly Rule[], { patternErrors }: ProxyParts): void {
  const errors = patternErrors(rules.map(({ domainPattern }) => domainPattern));
  const issues: Issue[] = errors.flatMap((error, index) => {
    const message = `is not a valid pattern: ${error}. Patterns are regular expressions on the host name, in RE2 syntax: no look-around, no back-references`;
    return error === undefined ? [] : [{ path: `proxies.${index}.domainPattern`, message }];
  });
  if (issues.length > 0) throw invalidRequest(issues);
}

/**
 * Returns the pool for the rule. Throws if no pool matches, because a direct connection would reveal the address of the
 * host.
 */
function requirePool(rule: Extract<Rule, { type: 'browserbase' }>, index: number, { pools }: ProxyParts): ProxyPool {
  const pool = poolFor(pools, rule.geolocation);
  if (pool) return pool;
  const placeSuffix = rule.geolocation ? ` for ${placeText(rule.geolocation)}` : '';
  throw fault('feature_unavailable', `The operator of this installation has not configured proxies${placeSuffix}.`, {
    advice: 'Use your own proxy (type external), or omit proxies. The session was not created.',
    details: { field: `proxies.${index}` },
  });
}

const placeText = ({ country, state, city }: Place): string =>
  [city, state, country.toUpperCase()].filter(word => word !== undefined).join(', ');

const DEFAULT_PORTS = { http: 80, https: 443, socks5: 1080 } as const;
const SOCKS_BYTES_MAX = 255;

function externalProxy({ server, username, password }: ExternalRule, index: number): StoredProxy {
  const proxyAddress = parseProxyAddress(server);
  if (typeof proxyAddress === 'string')
    throw invalidRequest([{ path: `proxies.${index}.server`, message: proxyAddress }]);
  const problem = userProblem({ ...proxyAddress, username, password });
  if (problem !== undefined) throw invalidRequest([{ path: `proxies.${index}`, message: problem }]);
  const user = username === undefined && password === undefined ? {} : { username, password };
  return { name: `proxies.${index}`, ...proxyAddress, ...user, trusted: false };
}

/** Returns the problem with the user name and password of a proxy. Undefined if there is no problem. */
export function userProblem({ scheme, username = '', password = '' }: ProxyUser): string | undefined {
  if (scheme !== 'socks5' || [username, password].every(text => Buffer.byteLength(text) <= SOCKS_BYTES_MAX))
    return undefined;
  return `has a username or password of more than ${SOCKS_BYTES_MAX} bytes, the maximum for SOCKS5`;
}

interface ProxyUser {
  readonly scheme: StoredProxy['scheme'];
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** Parses a proxy address. Returns a description of the problem if it is not valid. */
export function parseProxyAddress(text: string): Pick<StoredProxy, 'scheme' | 'hostname' | 'port'> | string {
  const [, scheme, authority] = /^(https?|socks5):\/\/([^/?#\s]+)\/?$/i.exec(text) ?? [];
  if (!scheme || !authority)
    return 'is not a proxy address; expected http://host:port, https://host:port or socks5://host:port';
  if (authority.includes('@'))
    return 'contains a user name; use the fields username and password, which are kept secret';
  // Parsed as http, because the URL Standard normalizes host names only for some schemes, and socks5 is not one of them.
  const url = URL.parse(`http://${authority}/`);
  const knownScheme = scheme.toLowerCase() as keyof typeof DEFAULT_PORTS; // Matched by the pattern above.
  const hostname = url?.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (!url || !hostname) return 'does not contain a valid host name';
  const [, portText] = /:(\d+)$/.exec(authority) ?? [];
  const port = portText === undefined ? DEFAULT_PORTS[knownScheme] : Number(portText);
  if (port < 1 || port > 65535) return 'does not contain a port from 1 to 65535';
  return { scheme: knownScheme, hostname, port };
}
