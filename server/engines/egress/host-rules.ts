// Decides which host names a session may reach. An entry matches the name and all its subdomains. The most specific
// entry decides. If the same name is allowed and denied, it is denied. Pure.

export type HostRule = 'network_policy' | 'ad' | 'no_session' | 'egress_limit';

export interface HostPolicy {
  /** Names in lower case and punycode without a trailing dot, or addresses in their shortest form. */
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly default: 'allow' | 'deny';
}

export type HostMatcher = (hostname: string) => boolean;

/** Returns a function that decides whether a host may be reached. */
export function hostMatcher(policy: HostPolicy): HostMatcher {
  const allow = new Set(policy.allow);
  const deny = new Set(policy.deny);
  return hostname => {
    for (const name of withParents(hostname)) {
      if (deny.has(name)) return false;
      if (allow.has(name)) return true;
    }
    return policy.default === 'allow';
  };
}

/**
 * Yields a name and its parents: `a.b.test`, `b.test`, `test`. For an address the parents are meaningless, but no valid
 * entry can match them.
 */
function* withParents(hostname: string): Generator<string> {
  for (let rest = hostname; ; ) {
    yield rest;
    const dot = rest.indexOf('.');
    if (dot < 0) return;
    rest = rest.slice(dot + 1);
  }
}
