// The one way from a target to a connection: judge the host, find its route, resolve, judge every answer, connect to the
// very address that was judged. CONNECT and plain requests both pass here.
import type { Socket } from 'node:net';
import type { Clock } from '../../kit/clock.ts';
import type { Address } from './address.ts';
import { addressesOf } from './addresses.ts';
import { dial } from './dial.ts';
import { Refused } from './failure.ts';
import type { EgressLimits } from './limits.ts';
import type { Link, Links } from './links.ts';
import type { EgressPolicy } from './policy.ts';
import { reachUpstream, tunnelThrough, type UpstreamConnection } from './reach-upstream.ts';
import type { Resolve } from './resolve.ts';
import type { Target } from './target.ts';
import type { Upstream } from './upstream.ts';

export interface GateParts {
  readonly policy: EgressPolicy;
  readonly resolve: Resolve;
  readonly links: Links;
  readonly clock: Clock;
  readonly limits: EgressLimits;
}

/** Names by which clouds' metadata is reached where a proxy resolves them. */
const METADATA_NAMES: ReadonlySet<string> = new Set(['metadata.google.internal', 'metadata.goog', 'metadata']);

export class Gate {
  readonly #parts: GateParts;
  #policy: EgressPolicy;

  constructor(parts: GateParts) {
    this.#parts = parts;
    this.#policy = parts.policy;
  }

  /** A connection to the target, of the wanted kind where no proxy stands between. Rejects with Refused or Failed. */
  async open<S extends Socket>(target: Target, make: () => S, signal: AbortSignal): Promise<S | Socket> {
    const upstream = this.route(target);
    if (!upstream) return this.#direct(target, make, signal);
    const connection = await this.#reach(upstream, target, signal);
    await tunnelThrough(upstream, connection, target, this.#parts.limits, signal);
    return connection.socket;
  }

  /** The proxy by which the target is reached; undefined: none. Throws Refused where the target may not be reached. */
  route(target: Target): Upstream | undefined {
    const refusal = this.#policy.refusesHost(target.hostname);
    if (refusal) throw new Refused(refusal);
    const upstream = this.#policy.routeTo(target.hostname);
    if (upstream) this.#judgeAsWritten(target);
    return upstream;
  }

  /** For requests that a proxy is asked for one by one: a connection to the proxy itself. */
  async openProxy(upstream: Upstream, target: Target, make: () => Socket, signal: AbortSignal): Promise<Socket> {
    return (await this.#reach(upstream, target, signal, make)).socket;
  }

  /** From now on; open connections that the new policy refuses, or leads another way, are ended. */
  replacePolicy(policy: EgressPolicy): void {
    this.#policy = policy;
    this.#parts.links.endWhere(link => !this.#stillFits(link));
  }

  async #direct<S extends Socket>(target: Target, make: () => S, signal: AbortSignal): Promise<S> {
    const { resolve, limits } = this.#parts;
    const addresses = await addressesOf(target, resolve, limits, signal);
    for (const address of addresses) this.#judge(address, target.port);
    const { socket, address } = await dial(addresses, target.port, make, limits, signal);
    const { localAddress: local } = socket;
    this.#register({ socket, hostname: target.hostname, address, port: target.port, local, upstream: undefined });
    return socket;
  }

  async #reach(
    upstream: Upstream,
    target: Target,
    signal: AbortSignal,
    make?: () => Socket,
  ): Promise<UpstreamConnection> {
    const judge = (address: Address, port: number): void => this.#judge(address, port);
    const connection = await reachUpstream(upstream, { ...this.#parts, judge }, signal, make);
    const { raw, address } = connection;
    const { localAddress: local } = raw;
    this.#register({ socket: raw, hostname: target.hostname, address, port: upstream.port, local, upstream });
    return connection;
  }

  /** The policy may have been replaced while we were connecting, and the address may turn out to be of this machine. */
  #register(link: Link): void {
    const { links, clock } = this.#parts;
    if (this.#stillFits(link)) return links.add(link, clock.monotonicMs());
    link.socket.destroy();
    const rule = this.#policy.refusesHost(link.hostname);
    if (rule) throw new Refused(rule);
    this.#judge(link.address, link.port, link.local);
    throw new Refused('network_policy');
  }

  #stillFits({ hostname, address, port, local, upstream }: Link): boolean {
    if (this.#policy.refusesHost(hostname) || this.#policy.routeTo(hostname) !== upstream) return false;
    return upstream?.trusted || this.#policy.judgeAddress(address, port, local).allowed;
  }

  /** Where a proxy resolves names, what is written is all that we can judge. */
  #judgeAsWritten({ hostname, address, port }: Target): void {
    if (address) this.#judge(address, port);
    if (hostname === 'localhost' || hostname.endsWith('.localhost')) throw new Refused('loopback');
    if (METADATA_NAMES.has(hostname)) throw new Refused('metadata');
  }

  #judge(address: Address, port: number, local?: string): void {
    const verdict = this.#policy.judgeAddress(address, port, local);
    if (!verdict.allowed) throw new Refused(verdict.rule);
  }
}
