// Which host names a session may reach (pure). An entry stands for its name and everything below it; of several that
// fit, the one that says most decides, and of two that say the same, the one that denies.

export type HostRule = 'network_policy' | 'ad' | 'no_session' | 'egress_limit';

export interface HostPolicy {
  /** Names as targets are written: lower case, punycode, no trailing dot; or an address in its shortest form. */
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly default: 'allow' | 'deny';
}

export type HostJudge = (hostname: string) => boolean;

/** Says whether a host may be reached. */
export function hostJudge(policy: HostPolicy): HostJudge {
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

/** Says whether a host, or one above it, stands in the list. */
export const listed =
  (names: ReadonlySet<string>): HostJudge =>
  hostname => {
    for (const name of withParents(hostname)) if (names.has(name)) return true;
    return false;
  };

/** `a.b.test`, `b.test`, `test`. An address has no parents, but nobody can write an entry that its tail would meet. */
function* withParents(hostname: string): Generator<string> {
  for (let rest = hostname; ; ) {
    yield rest;
    const dot = rest.indexOf('.');
    if (dot < 0) return;
    rest = rest.slice(dot + 1);
  }
}
