// Opens outbound connections: checks the host, finds its route, resolves it, checks every address, and connects to the
// checked address. Used for CONNECT requests and plain requests.
import type { Socket } from 'node:net';
import type { Clock } from '../../kit/clock.ts';
import type { Address } from './address.ts';
import { addressesOf } from './addresses.ts';
import { dial } from './dial.ts';
import { RefusedError } from './failure.ts';
import type { EgressLimits } from './limits.ts';
import type { OutboundConnection, OutboundConnections } from './outbound.ts';
import type { EgressPolicy } from './policy.ts';
import { reachUpstream, tunnelThrough, type UpstreamConnection } from './reach-upstream.ts';
import type { Resolve } from './resolve.ts';
import type { Target } from './target.ts';
import type { Upstream } from './upstream.ts';

export interface GateOptions {
  readonly policy: EgressPolicy;
  readonly resolve: Resolve;
  readonly outbound: OutboundConnections;
  readonly clock: Clock;
  readonly limits: EgressLimits;
}

/** Names of cloud metadata services. Such a name is refused if an upstream proxy would resolve it. */
const METADATA_NAMES: ReadonlySet<string> = new Set(['metadata.google.internal', 'metadata.goog', 'metadata']);

export class Gate {
  readonly #options: GateOptions;
  #policy: EgressPolicy;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#policy = options.policy;
  }

  /**
   * Connects to the target, directly with a socket from `createSocket`, or through a proxy. Rejects with RefusedError
   * or FailedError.
   */
  async open<S extends Socket>(target: Target, createSocket: () => S, signal: AbortSignal): Promise<S | Socket> {
    const upstream = this.route(target);
    if (!upstream) return this.#connectDirectly(target, createSocket, signal);
    const connection = await this.#connectThrough(upstream, target, signal);
    await tunnelThrough(upstream, connection, target, this.#options.limits, signal);
    return connection.socket;
  }

  /**
   * Returns the proxy for the target, or undefined for a direct connection. Throws RefusedError if the target is not
   * allowed.
   */
  route(target: Target): Upstream | undefined {
    const refusal = this.#policy.ruleRefusingHost(target.hostname);
    if (refusal) throw new RefusedError(refusal);
    const upstream = this.#policy.routeTo(target.hostname);
    if (upstream) this.#checkUnresolved(target);
    return upstream;
  }

  /** Whether the current policy refuses the host by its name. */
  refuses(hostname: string): boolean {
    return this.#policy.ruleRefusingHost(hostname) !== undefined;
  }

  /** Connects to the upstream proxy without a tunnel, for plain HTTP requests, which are sent to the proxy itself. */
  async openProxy(
    upstream: Upstream,
    target: Target,
    createSocket: () => Socket,
    signal: AbortSignal,
  ): Promise<Socket> {
    return (await this.#connectThrough(upstream, target, signal, createSocket)).socket;
  }

  /** Closes open connections that the new policy refuses or routes differently. */
  replacePolicy(policy: EgressPolicy): void {
    this.#policy = policy;
    this.#options.outbound.closeWhere(connection => !this.#isStillAllowed(connection));
  }

  async #connectDirectly<S extends Socket>(target: Target, createSocket: () => S, signal: AbortSignal): Promise<S> {
    const { resolve, limits } = this.#options;
    const addresses = await addressesOf(target, resolve, limits, signal);
    for (const address of addresses) this.#check(address, target.port);
    const { socket, address } = await dial(addresses, target.port, createSocket, limits, signal);
    const { localAddress: local } = socket;
    this.#register({ socket, hostname: target.hostname, address, port: target.port, local, upstream: undefined });
    return socket;
  }

  async #connectThrough(
    upstream: Upstream,
    target: Target,
    signal: AbortSignal,
    createSocket?: () => Socket,
  ): Promise<UpstreamConnection> {
    const check = (address: Address, port: number): void => this.#check(address, port);
    const connection = await reachUpstream(upstream, { ...this.#options, check }, signal, createSocket);
    const { raw, address } = connection;
    const { localAddress: local } = raw;
    this.#register({ socket: raw, hostname: target.hostname, address, port: upstream.port, local, upstream });
    return connection;
  }

  /**
   * Checks the connection again before adding it. The policy may have changed, and the local address may show that the
   * remote address belongs to this machine.
   */
  #register(connection: OutboundConnection): void {
    const { outbound, clock } = this.#options;
    if (this.#isStillAllowed(connection)) return outbound.add(connection, clock.monotonicMs());
    connection.socket.destroy();
    const rule = this.#policy.ruleRefusingHost(connection.hostname);
    if (rule) throw new RefusedError(rule);
    this.#check(connection.address, connection.port, connection.local);
    throw new RefusedError('network_policy');
  }

  #isStillAllowed({ hostname, address, port, local, upstream }: OutboundConnection): boolean {
    if (this.#policy.ruleRefusingHost(hostname) || this.#policy.routeTo(hostname) !== upstream) return false;
    return upstream?.trusted || this.#policy.checkAddress(address, port, local).isAllowed;
  }

  /**
   * Checks a target that is sent to an upstream proxy without being resolved here. If the target is a name, only the
   * name itself can be checked.
   */
  #checkUnresolved({ hostname, address, port }: Target): void {
    if (address) this.#check(address, port);
    if (hostname === 'localhost' || hostname.endsWith('.localhost')) throw new RefusedError('loopback');
    if (METADATA_NAMES.has(hostname)) throw new RefusedError('metadata');
  }

  #check(address: Address, port: number, local?: string): void {
    const verdict = this.#policy.checkAddress(address, port, local);
    if (!verdict.isAllowed) throw new RefusedError(verdict.rule);
  }
}
