// The one way from a target to a connection: resolve, judge every answer, connect to the very address that was judged.
// CONNECT and plain requests both pass here, and so will rules on names and routes by way of other proxies.
import type { Socket } from 'node:net';
import type { Clock } from '../../kit/clock.ts';
import { WaitExpired, within } from '../../kit/wait.ts';
import { type Address, parseAddress } from './address.ts';
import { dial } from './dial.ts';
import { Failed, Refused } from './failure.ts';
import type { EgressLimits } from './limits.ts';
import type { Links } from './links.ts';
import type { EgressPolicy } from './policy.ts';
import type { Resolve } from './resolve.ts';
import type { Target } from './target.ts';

export interface GateParts {
  readonly policy: EgressPolicy;
  readonly resolve: Resolve;
  readonly links: Links;
  readonly clock: Clock;
  readonly limits: EgressLimits;
}

export class Gate {
  readonly #parts: GateParts;
  #policy: EgressPolicy;

  constructor(parts: GateParts) {
    this.#parts = parts;
    this.#policy = parts.policy;
  }

  /** A socket of the wanted kind, connected. Rejects with Refused or Failed. */
  async open<S extends Socket>(target: Target, make: () => S, signal: AbortSignal): Promise<S> {
    const { limits, links, clock } = this.#parts;
    const addresses = await this.#addresses(target, signal);
    for (const address of addresses) this.#judge(address, target.port);
    const { socket, address } = await dial(addresses, target.port, make, limits, signal);
    try {
      // The policy may have been replaced while we were connecting.
      this.#judge(address, target.port);
    } catch (error) {
      socket.destroy();
      throw error;
    }
    links.add({ socket, hostname: target.hostname, address, port: target.port }, clock.monotonicMs());
    return socket;
  }

  /** From now on; open connections that the new policy refuses are ended. */
  replacePolicy(policy: EgressPolicy): void {
    this.#policy = policy;
    this.#parts.links.endWhere(link => !policy.judgeAddress(link.address, link.port).allowed);
  }

  #judge(address: Address, port: number): void {
    const verdict = this.#policy.judgeAddress(address, port);
    if (!verdict.allowed) throw new Refused(verdict.rule);
  }

  async #addresses(target: Target, signal: AbortSignal): Promise<readonly Address[]> {
    if (target.address) return [target.address];
    const texts = await this.#resolved(target.hostname, signal);
    const addresses = texts.map(parseAddress).filter(address => address !== undefined);
    // An answer that we cannot read is one that we cannot judge.
    if (addresses.length === 0 || addresses.length !== texts.length) throw new Failed('name_not_resolved');
    return addresses;
  }

  async #resolved(hostname: string, signal: AbortSignal): Promise<readonly string[]> {
    const { resolve, limits } = this.#parts;
    try {
      return await within(limits.resolveMs, 'the name servers', () => resolve(hostname), signal);
    } catch (error) {
      throw error instanceof WaitExpired ? new Failed('name_timed_out', error) : error;
    }
  }
}
