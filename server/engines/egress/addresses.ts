// Resolves a host to addresses, with a timeout. A host that is already an address is only parsed.
import { WaitExpired, withTimeout } from '../../kit/wait.ts';
import { type Address, parseAddress } from './address.ts';
import { FailedError } from './failure.ts';
import type { EgressLimits } from './limits.ts';
import type { Resolve } from './resolve.ts';

export async function addressesOf(
  { hostname }: { readonly hostname: string },
  resolve: Resolve,
  limits: EgressLimits,
  signal: AbortSignal,
): Promise<readonly Address[]> {
  const literalAddress = parseAddress(hostname);
  if (literalAddress) return [literalAddress];
  const texts = await resolveName(hostname, resolve, limits, signal);
  const addresses = texts.map(parseAddress).filter(address => address !== undefined);
  // An address that cannot be parsed cannot be checked, so the whole answer is rejected.
  if (addresses.length === 0 || addresses.length !== texts.length) throw new FailedError('name_not_resolved');
  return addresses;
}

async function resolveName(
  hostname: string,
  resolve: Resolve,
  limits: EgressLimits,
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    return await withTimeout(limits.resolveMs, 'the name servers', () => resolve(hostname), signal);
  } catch (error) {
    throw error instanceof WaitExpired ? new FailedError('name_timed_out', error) : error;
  }
}
