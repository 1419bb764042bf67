// Restricts this process to this machine: names other than localhost are not resolved, and no connections are made to
// addresses other than loopback. Attempts are recorded, so that a test can assert that there were none.
import dns from 'node:dns';
import net from 'node:net';

const attemptedHosts: string[] = [];

/** Returns the attempted destinations. */
export const attemptedDestinations = (): readonly string[] => attemptedHosts;

const isLoopback = (host: string): boolean => /^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host);

const { lookup } = dns;
const guardedLookup = (host: string, ...rest: readonly unknown[]): void => {
  if (isLoopback(host)) return void Reflect.apply(lookup, dns, [host, ...rest]);
  attemptedHosts.push(host);
  const callback = rest.at(-1);
  if (typeof callback === 'function') process.nextTick(callback, new Error(`${host} is not on this machine`));
};
Object.assign(dns, { lookup: guardedLookup });

const { connect } = net.Socket.prototype;
Object.assign(net.Socket.prototype, {
  connect(this: net.Socket, ...args: readonly unknown[]): net.Socket {
    const host = hostIn(args);
    if (host !== undefined && net.isIP(host) !== 0 && !isLoopback(host)) {
      attemptedHosts.push(host);
      return this.destroy(new Error(`${host} is not on this machine`));
    }
    return Reflect.apply(connect, this, args);
  },
});

/**
 * Returns the host in the arguments of `connect`: (options), (port, host), or one array that contains either of these.
 */
function hostIn(args: readonly unknown[]): string | undefined {
  const [first, second] = Array.isArray(args[0]) ? args[0] : args;
  const { host }: { host?: unknown } = typeof first === 'object' ? Object(first) : { host: second };
  return typeof host === 'string' ? host : undefined;
}
