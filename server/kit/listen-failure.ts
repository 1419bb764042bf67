// The error for an address on which this process cannot listen.
import { hasCode } from './durable.ts';
import { reason } from './fault.ts';

/**
 * `advice` names the setting. Must be called where listening fails, because the error itself does not name the
 * listener.
 */
export function listenFailure(address: string, error: unknown, advice: string): Error {
  const problem = hasCode(error, 'EADDRINUSE')
    ? 'is in use by another program'
    : `cannot be used as the listening address (${reason(error)})`;
  return new Error(`${address} ${problem}. ${advice}`);
}
