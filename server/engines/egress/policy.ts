// The policy of one session: which hosts and addresses it may reach, and through which proxy. A change replaces the
// whole policy.
import type { Address, AddressRange } from './address.ts';
import type { HostMatcher, HostRule } from './host-rules.ts';
import { addressRules, type Verdict } from './rules.ts';
import type { ThisMachine } from './this-machine.ts';
import type { Upstream } from './upstream.ts';

export interface EgressPolicy {
  /**
   * Returns the rule that refuses a host name, which has not been resolved yet. Returns undefined if the host is
   * allowed.
   */
  ruleRefusingHost(hostname: string): HostRule | undefined;
  /** Checks an address. `local`: the local address of an open connection to the address, if there is one. */
  checkAddress(address: Address, port: number, local?: string): Verdict;
  /** The proxy for a host. Undefined for a direct connection. */
  routeTo(hostname: string): Upstream | undefined;
}

export interface PolicyOptions {
  /** Address ranges that the operator allows (BERTH_EGRESS_ALLOW). */
  readonly allow: readonly AddressRange[];
  readonly machine: ThisMachine;
  /** Whether a host is allowed. If absent, every host is allowed. */
  readonly isAllowedHost?: HostMatcher | undefined;
  /** Whether a host serves advertisements. If absent, no ads are blocked. */
  readonly isAdHost?: HostMatcher | undefined;
  /** If absent, all connections are direct. */
  readonly routeTo?: EgressPolicy['routeTo'] | undefined;
}

export function egressPolicy({ allow, machine, isAllowedHost, isAdHost, routeTo }: PolicyOptions): EgressPolicy {
  const rules = addressRules(allow, machine);
  return {
    ruleRefusingHost: hostname => {
      if (isAllowedHost && !isAllowedHost(hostname)) return 'network_policy';
      return isAdHost?.(hostname) ? 'ad' : undefined;
    },
    checkAddress: rules.check,
    routeTo: routeTo ?? (() => undefined),
  };
}

/**
 * Returns a policy that allows nothing. Used for a browser without a session, and for a session that has reached its
 * egress limit or that of its application.
 */
export const closedPolicy = (rule: HostRule): EgressPolicy => ({
  ruleRefusingHost: () => rule,
  checkAddress: () => ({ isAllowed: false, rule: 'unspecified' }),
  routeTo: () => undefined,
});
