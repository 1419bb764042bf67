// The error for an address on which this process cannot listen.
import { hasCode } from './durable.ts';
import { reason } from './fault.ts';

/**
 * `advice` names the setting. Made where the listening fails, because the error itself does not show which listener it
 * belongs to.
 */
export function listenFailure(address: string, error: unknown, advice: string): Error {
  const why = hasCode(error, 'EADDRINUSE')
    ? 'is in use by another program'
    : `cannot be used as the listening address (${reason(error)})`;
  return new Error(`${address} ${why}. ${advice}`);
}
