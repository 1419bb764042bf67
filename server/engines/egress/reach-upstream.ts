// Connects to a proxy between us and what a session visits. It resolves the names it is asked for; its own address goes
// through our rules unless the operator named it.
import { isIP, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { WaitExpired, within } from '../../kit/wait.ts';
import type { Address } from './address.ts';
import { addressesOf } from './addresses.ts';
import { dial } from './dial.ts';
import { Failed, ProxyFailed, Refused } from './failure.ts';
import { askForTunnel } from './http-tunnel.ts';
import type { EgressLimits } from './limits.ts';
import type { Resolve } from './resolve.ts';
import { greetSocks, socksTunnel } from './socks5.ts';
import type { Target } from './target.ts';
import type { Upstream } from './upstream.ts';

export interface UpstreamParts {
  readonly resolve: Resolve;
  /** Throws Refused for an address that the session may not reach. */
  readonly judge: (address: Address, port: number) => void;
  readonly limits: EgressLimits;
}

export interface UpstreamConnection {
  /** Speaks to the proxy, decrypted where that is needed. */
  readonly socket: Socket;
  /** What counts the bytes. */
  readonly raw: Socket;
  readonly address: Address;
}

/** Connected, and for https encrypted; nothing is asked of the proxy yet. Under TLS a socket is always an ordinary one. */
export async function reachUpstream(
  upstream: Upstream,
  { resolve, judge, limits }: UpstreamParts,
  signal: AbortSignal,
  make = ordinary,
): Promise<UpstreamConnection> {
  try {
    const addresses = await addressesOf(upstream, resolve, limits, signal);
    if (!upstream.trusted) for (const address of addresses) judge(address, upstream.port);
    const { socket: raw, address } = await dial(
      addresses,
      upstream.port,
      upstream.scheme === 'https' ? ordinary : make,
      limits,
      signal,
    );
    if (upstream.scheme !== 'https') return { socket: raw, raw, address };
    return { socket: await encrypted(raw, upstream, limits, signal), raw, address };
  } catch (error) {
    throw signal.aborted ? error : failureOf(upstream, error);
  }
}

const ordinary = (): Socket => new Socket({ allowHalfOpen: true });

/** Asks the proxy for a way to the target. Once this returns, the socket speaks to the target. */
export async function tunnelThrough(
  upstream: Upstream,
  { socket }: UpstreamConnection,
  target: Target,
  limits: EgressLimits,
  signal: AbortSignal,
): Promise<void> {
  try {
    await within(
      limits.connectMs,
      'a proxy to connect to a host',
      async () => {
        if (upstream.scheme !== 'socks5') return askForTunnel(socket, upstream, target);
        await greetSocks(socket, upstream);
        return socksTunnel(socket, upstream, target);
      },
      signal,
    );
  } catch (error) {
    socket.destroy();
    throw signal.aborted ? error : failureOf(upstream, error);
  }
}

async function encrypted(raw: Socket, upstream: Upstream, limits: EgressLimits, signal: AbortSignal): Promise<Socket> {
  const servername = isIP(upstream.hostname) === 0 ? { servername: upstream.hostname } : {};
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connectTls({ socket: raw, host: upstream.hostname, ALPNProtocols: ['http/1.1'], ...servername });
  socket.once('secureConnect', resolve);
  // Stays for the socket's life: an error must never be without a listener.
  socket.on('error', reject);
  socket.once('close', () => reject(new Error('the proxy closed the connection')));
  try {
    await within(limits.tlsHandshakeMs, 'a proxy to finish TLS', () => promise, signal);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error instanceof WaitExpired ? error : new ProxyFailed('proxy_not_trusted', upstream.name, error);
  }
}

function failureOf(upstream: Upstream, error: unknown): unknown {
  if (error instanceof Refused || error instanceof ProxyFailed) return error;
  const late =
    error instanceof WaitExpired || (error instanceof Failed && /^(connect|name)_timed_out$/.test(error.kind));
  if (late) return new ProxyFailed('proxy_timed_out', upstream.name, error);
  // It answered, and could not reach that one host.
  if (error instanceof Failed && error.kind === 'host_not_reached') return error;
  return new ProxyFailed('proxy_unreachable', upstream.name, error);
}
