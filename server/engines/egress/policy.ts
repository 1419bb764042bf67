// What one session may reach, as one replaceable object: the proxy asks it and knows no rule itself. Rules on host
// names, routes by way of other proxies and budgets become further questions of this interface.
import type { Address, AddressRange } from './address.ts';
import { addressRules, type Verdict } from './rules.ts';

export interface EgressPolicy {
  judgeAddress(address: Address, port: number): Verdict;
}

export interface PolicyOptions {
  /** Ranges that the operator opened. */
  readonly allow: readonly AddressRange[];
  /** Our own listeners, see own-listeners.ts. */
  readonly own: (port: number) => readonly AddressRange[];
}

export function egressPolicy({ allow, own }: PolicyOptions): EgressPolicy {
  const addresses = addressRules(allow, own);
  return { judgeAddress: (address, port) => addresses.judge(address, port) };
}
