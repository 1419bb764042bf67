// What one session may reach and by which way, as one replaceable object: the proxy asks it and knows no rule itself.
import type { Address, AddressRange } from './address.ts';
import type { HostJudge, HostRule } from './host-rules.ts';
import { addressRules, type Verdict } from './rules.ts';
import type { ThisMachine } from './this-machine.ts';
import type { Upstream } from './upstream.ts';

export interface EgressPolicy {
  /** The rule that refuses a host before anything is looked up; undefined where none does. */
  refusesHost(hostname: string): HostRule | undefined;
  /** `local`: the near end of a connection to it, where there is one. */
  judgeAddress(address: Address, port: number, local?: string): Verdict;
  /** The proxy that leads to a host; undefined: the session connects to it directly. */
  routeTo(hostname: string): Upstream | undefined;
}

export interface PolicyOptions {
  /** Ranges that the operator opened. */
  readonly allow: readonly AddressRange[];
  readonly machine: ThisMachine;
  /** Absent: every host. */
  readonly hosts?: HostJudge | undefined;
  /** Whether a host serves advertisements. Absent: none is blocked. */
  readonly ads?: HostJudge | undefined;
  /** Absent: all direct. */
  readonly routeTo?: EgressPolicy['routeTo'] | undefined;
}

export function egressPolicy({ allow, machine, hosts, ads, routeTo }: PolicyOptions): EgressPolicy {
  const addresses = addressRules(allow, machine);
  return {
    refusesHost: hostname => {
      if (hosts && !hosts(hostname)) return 'network_policy';
      return ads?.(hostname) ? 'ad' : undefined;
    },
    judgeAddress: addresses.judge,
    routeTo: routeTo ?? (() => undefined),
  };
}

/** Nothing at all: of a browser that belongs to no session yet, or whose session has used up its budget. */
export const closedPolicy = (rule: HostRule): EgressPolicy => ({
  refusesHost: () => rule,
  judgeAddress: () => ({ allowed: false, rule: 'unspecified' }),
  routeTo: () => undefined,
});
