// Finds the other living host that owns the object of a request.
import type { Hosts, LivingHost, Owner } from '../../engines/store/rows/hosts.ts';
import { type HostId, isUuid, type SessionId } from '../../kit/ids.ts';
import type { Fleet } from './fleet.ts';

/**
 * Maximum number of objects whose owner is remembered. The owner does not change, because a session stays on its host.
 */
const REMEMBERED_OWNERS_MAX = 10_000;

export type OwnedKind = 'session' | 'download' | 'invocation' | 'handoff' | 'action';

export interface OwnersParts {
  readonly fleet: Fleet;
  readonly host: HostId;
  readonly rows: Pick<
    Hosts,
    'hostOfSession' | 'hostOfDownload' | 'hostOfInvocation' | 'hostOfHandoff' | 'hostOfAction'
  >;
  /** Whether the session is running or starting in this process. */
  readonly isHere: (session: SessionId) => boolean;
}

export class Owners {
  readonly #parts: OwnersParts;
  readonly #ownersById = new Map<string, Owner>();

  constructor(parts: OwnersParts) {
    this.#parts = parts;
  }

  /**
   * Returns the other host that owns the object. `application` is the application of the caller, if it is known.
   * Undefined for an object of another application, so that this host responds as if the object did not exist.
   */
  async otherOwner(kind: OwnedKind, text: string, application?: string): Promise<LivingHost | undefined> {
    const { fleet, host, isHere } = this.#parts;
    const id = text.toLowerCase();
    if (!fleet.hasLease || !isUuid(id) || (kind === 'session' && isHere(id as SessionId))) return undefined;
    const owner = this.#ownersById.get(id) ?? (await this.#find(kind, id));
    if (!owner || owner.hostId === host) return undefined;
    if (application !== undefined && owner.applicationId !== application) return undefined;
    if (!fleet.isLiving(owner.hostId)) await this.#readHostsOnce(owner.hostId);
    return fleet.peer(owner.hostId);
  }

  async #find(kind: OwnedKind, id: string): Promise<Owner | undefined> {
    const { rows } = this.#parts;
    const find = {
      ...{ session: rows.hostOfSession, download: rows.hostOfDownload },
      ...{ invocation: rows.hostOfInvocation, handoff: rows.hostOfHandoff, action: rows.hostOfAction },
    }[kind];
    const owner = await find(id);
    if (!owner) return undefined;
    const [oldestId] = this.#ownersById.keys();
    if (this.#ownersById.size >= REMEMBERED_OWNERS_MAX && oldestId !== undefined) this.#ownersById.delete(oldestId);
    this.#ownersById.set(id, owner);
    return owner;
  }

  readonly #lookedUpHosts = new Set<HostId>();

  /**
   * Reads the hosts again, because an unknown host may have just joined. This is done once per unknown host, so it is
   * not repeated for a host that is gone.
   */
  async #readHostsOnce(id: HostId): Promise<void> {
    if (this.#lookedUpHosts.has(id)) return;
    this.#lookedUpHosts.add(id);
    await this.#parts.fleet.refreshHosts();
  }
}
