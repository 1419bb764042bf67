// Connects to an upstream proxy, which resolves names itself. The session's policy checks the address of the proxy,
// unless the operator configured the proxy.
import { isIP, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { WaitExpired, withTimeout } from '../../kit/wait.ts';
import type { Address } from './address.ts';
import { addressesOf } from './addresses.ts';
import { dial } from './dial.ts';
import { FailedError, ProxyFailedError, RefusedError } from './failure.ts';
import { askForTunnel } from './http-tunnel.ts';
import type { EgressLimits } from './limits.ts';
import type { Resolve } from './resolve.ts';
import { greetSocks, openSocksTunnel } from './socks5.ts';
import type { Target } from './target.ts';
import type { Upstream } from './upstream.ts';

export interface UpstreamOptions {
  readonly resolve: Resolve;
  /** Throws RefusedError for an address that the session may not reach. */
  readonly check: (address: Address, port: number) => void;
  readonly limits: EgressLimits;
}

export interface UpstreamConnection {
  /** Carries the protocol of the proxy: the TLS socket for https, otherwise `raw`. */
  readonly socket: Socket;
  /** The underlying TCP socket, whose byte counts are recorded. */
  readonly raw: Socket;
  readonly address: Address;
}

/**
 * Connects to the proxy, with TLS for https, and sends no request. `createSocket` is ignored for https, which needs an
 * ordinary socket.
 */
export async function reachUpstream(
  upstream: Upstream,
  { resolve, check, limits }: UpstreamOptions,
  signal: AbortSignal,
  createSocket = plainSocket,
): Promise<UpstreamConnection> {
  try {
    const addresses = await addressesOf(upstream, resolve, limits, signal);
    if (!upstream.trusted) for (const address of addresses) check(address, upstream.port);
    const { socket: raw, address } = await dial(
      addresses,
      upstream.port,
      upstream.scheme === 'https' ? plainSocket : createSocket,
      limits,
      signal,
    );
    if (upstream.scheme !== 'https') return { socket: raw, raw, address };
    return { socket: await encrypt(raw, upstream, limits, signal), raw, address };
  } catch (error) {
    throw signal.aborted ? error : failureOf(upstream, error);
  }
}

const plainSocket = (): Socket => new Socket({ allowHalfOpen: true });

/** Opens a tunnel through the proxy. Resolves when the socket is connected to the target. */
export async function tunnelThrough(
  upstream: Upstream,
  { socket }: UpstreamConnection,
  target: Target,
  limits: EgressLimits,
  signal: AbortSignal,
): Promise<void> {
  try {
    await withTimeout(
      limits.connectMs,
      'a proxy to connect to a host',
      async () => {
        if (upstream.scheme !== 'socks5') return askForTunnel(socket, upstream, target);
        await greetSocks(socket, upstream);
        return openSocksTunnel(socket, upstream, target);
      },
      signal,
    );
  } catch (error) {
    socket.destroy();
    throw signal.aborted ? error : failureOf(upstream, error);
  }
}

async function encrypt(raw: Socket, upstream: Upstream, limits: EgressLimits, signal: AbortSignal): Promise<Socket> {
  const servername = isIP(upstream.hostname) === 0 ? { servername: upstream.hostname } : {};
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connectTls({ socket: raw, host: upstream.hostname, ALPNProtocols: ['http/1.1'], ...servername });
  socket.once('secureConnect', resolve);
  // This listener is not removed, because an `error` event without a listener would end the process.
  socket.on('error', reject);
  socket.once('close', () => reject(new Error('the proxy closed the connection')));
  try {
    await withTimeout(limits.tlsHandshakeMs, 'a proxy to complete the TLS handshake', () => promise, signal);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error instanceof WaitExpired ? error : new ProxyFailedError('proxy_not_trusted', upstream.name, error);
  }
}

function failureOf(upstream: Upstream, error: unknown): unknown {
  if (error instanceof RefusedError || error instanceof ProxyFailedError) return error;
  const isTimeout =
    error instanceof WaitExpired || (error instanceof FailedError && /^(connect|name)_timed_out$/.test(error.kind));
  if (isTimeout) return new ProxyFailedError('proxy_timed_out', upstream.name, error);
  // The proxy works, but could not reach this host.
  if (error instanceof FailedError && error.kind === 'host_not_reached') return error;
  return new ProxyFailedError('proxy_unreachable', upstream.name, error);
}
