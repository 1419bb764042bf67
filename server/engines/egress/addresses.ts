// From a host to its addresses, in a bounded time; an answer that cannot be read is none.
import { WaitExpired, within } from '../../kit/wait.ts';
import { type Address, parseAddress } from './address.ts';
import { Failed } from './failure.ts';
import type { EgressLimits } from './limits.ts';
import type { Resolve } from './resolve.ts';

export async function addressesOf(
  { hostname }: { readonly hostname: string },
  resolve: Resolve,
  limits: EgressLimits,
  signal: AbortSignal,
): Promise<readonly Address[]> {
  const itself = parseAddress(hostname);
  if (itself) return [itself];
  const texts = await resolved(hostname, resolve, limits, signal);
  const addresses = texts.map(parseAddress).filter(address => address !== undefined);
  // An answer that we cannot read is one that we cannot judge.
  if (addresses.length === 0 || addresses.length !== texts.length) throw new Failed('name_not_resolved');
  return addresses;
}

async function resolved(
  hostname: string,
  resolve: Resolve,
  limits: EgressLimits,
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    return await within(limits.resolveMs, 'the name servers', () => resolve(hostname), signal);
  } catch (error) {
    throw error instanceof WaitExpired ? new Failed('name_timed_out', error) : error;
  }
}
