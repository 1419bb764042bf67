// This host as a member of a fleet: its lease, which other hosts are alive, and which host should take a session. With
// the embedded database there is no lease, and the host is always alone.
import { randomUUID } from 'node:crypto';
import type { Hosts, JoiningHost, LivingHost } from '../../engines/store/rows/hosts.ts';
import { reason } from '../../kit/fault.ts';
import type { HostId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import type { Closeable } from '../../kit/scope.ts';
import { withTimeout } from '../../kit/wait.ts';
import { assertMayJoin, type FileStorage } from './fits.ts';
import { roomByRegion, roomOf, selectHost } from './placement.ts';

export interface LeaseTimes {
  readonly ms: number;
  /** How long the restart of a host may take. */
  readonly restartMs: number;
}

/**
 * Divisors of the lease time. They give the interval between renewals, and the time within which the database must
 * respond.
 */
const RENEWALS_PER_LEASE = 6;
const TIMEOUTS_PER_LEASE = 3;
/**
 * A host that could not renew its lease ends its sessions before other hosts may declare it lost. The margin is this
 * fraction of the lease time.
 */
const LEASE_END_MARGIN = 1 / 8;

export interface FleetParts extends Pick<Runtime, 'host' | 'clock' | 'log'> {
  readonly rows: Hosts;
  readonly storage: FileStorage;
  readonly joiningHost: Omit<JoiningHost, 'id' | 'incarnation' | 'clockMs'>;
  readonly lease: LeaseTimes;
}

interface Lease {
  readonly row: JoiningHost;
  /** Time on the monotonic clock before which other hosts cannot declare this host lost. */
  untilMs: number;
  /** Time since which the lease has been renewed without a gap. */
  readonly sinceMs: number;
}

export class Fleet implements Closeable {
  readonly #parts: FleetParts;
  readonly #responseTimeoutMs: number;
  readonly #renewIntervalMs: number;
  #lease: Lease | undefined;
  #livingHosts: readonly LivingHost[] = [];
  /** Number of sessions placed on each host since the number of its used slots was last read. */
  readonly #placedCounts = new Map<HostId, number>();
  #countWarm: () => number = () => 0;
  #endSessions: (why: string) => Promise<void> = async () => {};
  #hostsReadListener: () => void = () => {};
  #rejoinPromise: Promise<void> | undefined;
  readonly #closeController = new AbortController();
  #renewLoop: Promise<void> | undefined;
  #isClosed = false;
  #wasLost = false;

  constructor(parts: FleetParts) {
    this.#parts = parts;
    this.#responseTimeoutMs = parts.lease.ms / TIMEOUTS_PER_LEASE;
    this.#renewIntervalMs = parts.lease.ms / RENEWALS_PER_LEASE;
  }

  get leaseMs(): number {
    return this.#parts.lease.ms;
  }

  /**
   * Takes the lease.
   * @throws Fault `fleet_refused`
   */
  async join(): Promise<void> {
    const { rows, storage, joiningHost: ownFields, host, clock, log } = this.#parts;
    const queryStartMs = clock.monotonicMs();
    const now = await rows.now();
    const clockMs = Math.round(clock.now().getTime() - now.getTime() - (clock.monotonicMs() - queryStartMs) / 2);
    const row = { ...ownFields, id: host, incarnation: randomUUID(), clockMs };
    const joinStartMs = clock.monotonicMs();
    const check = (otherHosts: readonly LivingHost[]) => assertMayJoin(row, storage, otherHosts);
    const { wasLost } = await rows.join(row, this.leaseMs, check, this.#renewLoop === undefined);
    this.#lease = { row, untilMs: joinStartMs + this.leaseMs, sinceMs: joinStartMs };
    await this.#refresh();
    this.#renewLoop ??= this.#keepRenewing();
    log.info('fleet.joined', { hosts: this.#livingHosts.length, url: row.url });
    this.#wasLost = wasLost;
  }

  /** Whether other hosts had declared this host lost before it joined. In that case, its sessions are not continued. */
  get wasLost(): boolean {
    return this.#wasLost;
  }

  /**
   * Sets the functions that the fleet needs. `endSessions` is called when the lease is lost, and ends all sessions of
   * this host at once.
   */
  begin(parts: { readonly warm: () => number; readonly endSessions: (why: string) => Promise<void> }): void {
    this.#countWarm = parts.warm;
    this.#endSessions = parts.endSessions;
  }

  /** Sets a function that is called each time the living hosts have been read. */
  onHostsRead(listener: () => void): void {
    this.#hostsReadListener = listener;
  }

  /**
   * Renews the lease at intervals. Starts when the host joins, because starting the other parts of the server may take
   * longer than a lease.
   */
  async #keepRenewing(): Promise<void> {
    const { clock } = this.#parts;
    while (!this.#isClosed) {
      await clock.sleep(this.#renewIntervalMs, this.#closeController.signal).catch(() => {});
      await this.renew();
    }
  }

  /** Extends the lease, and reads which other hosts are alive. */
  async renew(): Promise<void> {
    const lease = this.#lease;
    const { rows, clock, log } = this.#parts;
    if (this.#isClosed || !lease) return;
    const queryStartMs = clock.monotonicMs();
    const otherHostCount = this.peers.length;
    try {
      const isRenewed = await withTimeout(this.#responseTimeoutMs, 'the lease to be renewed', () =>
        rows.renew(lease.row, this.leaseMs, this.#countWarm()),
      );
      // If this host is leaving, `leave` has already recorded that, and the next process of this host continues its
      // sessions.
      if (this.#isClosed) return;
      if (!isRenewed) await this.#onLeaseLost('another host declared this host lost');
      else lease.untilMs = queryStartMs + this.leaseMs;
      await withTimeout(this.#responseTimeoutMs, 'the hosts', () => this.#refresh());
    } catch (error) {
      log.warn('fleet.not_renewed', { reason: reason(error) });
      const isLeaseOver = clock.monotonicMs() > lease.untilMs - this.leaseMs * LEASE_END_MARGIN;
      // If the host is alone, no other host can declare it lost, so its sessions can wait for the database.
      if (isLeaseOver && otherHostCount > 0 && this.#lease === lease && !this.#isClosed)
        await this.#onLeaseLost('the lease could not be renewed in time');
    }
  }

  /**
   * Whether this host may declare other hosts lost. It must have renewed its own lease without a gap for the length of
   * a lease.
   */
  get mayDeclareLost(): boolean {
    const nowMs = this.#parts.clock.monotonicMs();
    const lease = this.#lease;
    return lease !== undefined && nowMs < lease.untilMs && nowMs - lease.sinceMs > this.leaseMs;
  }

  /** Whether no other host is known. */
  get isAlone(): boolean {
    return this.peers.length === 0;
  }

  get hasLease(): boolean {
    return this.#lease !== undefined;
  }

  get peers(): readonly LivingHost[] {
    return this.#livingHosts.filter(({ id }) => id !== this.#parts.host);
  }

  peer(id: HostId): LivingHost | undefined {
    return this.peers.find(peer => peer.id === id);
  }

  isLiving(id: HostId): boolean {
    return id === this.#parts.host || this.#livingHosts.some(host => host.id === id);
  }

  /** Number of slots of the other living hosts. */
  get slotsElsewhere(): number {
    return this.peers.reduce((sum, { slots }) => sum + slots, 0);
  }

  /** Returns the host that should take a session next. Undefined if no host takes sessions. */
  choose(region: string | undefined, excluded: ReadonlySet<HostId> = new Set()): HostId | undefined {
    const chosenHost = selectHost(
      this.#livingHosts.filter(({ id }) => !excluded.has(id)),
      { ownHost: this.#parts.host, placedCounts: this.#placedCounts, ...(region === undefined ? {} : { region }) },
    );
    if (chosenHost) this.#placedCounts.set(chosenHost, (this.#placedCounts.get(chosenHost) ?? 0) + 1);
    return chosenHost;
  }

  /** Whether another host has a free slot. */
  get hasRoomElsewhere(): boolean {
    return this.peers.some(peer => roomOf(peer, this.#placedCounts) > 0);
  }

  /** Number of free slots of the hosts that take sessions, by region. */
  get roomByRegion(): ReadonlyMap<string, number> {
    return roomByRegion(this.#livingHosts, this.#placedCounts);
  }

  /** Reads the list of living hosts again, without waiting for the next renewal of the lease. Logs a failure. */
  async refreshHosts(): Promise<void> {
    await this.#refresh().catch(error => this.#parts.log.warn('fleet.not_read', { reason: reason(error) }));
  }

  /** Gives up the lease. `away`: this host is restarting and keeps its sessions. `left`: this host has no sessions. */
  async leave(state: 'away' | 'left'): Promise<void> {
    this.#stopRenewing();
    const { rows, log } = this.#parts;
    const lease = this.#lease;
    if (!lease) return;
    await withTimeout(this.#responseTimeoutMs, 'the lease to be given up', () =>
      rows.leave(lease.row, state, state === 'away' ? this.#parts.lease.restartMs : 0),
    ).catch(error => log.warn('fleet.not_left', { reason: reason(error) }));
  }

  async close(): Promise<void> {
    this.#stopRenewing();
    await this.#renewLoop;
    await this.#rejoinPromise;
  }

  #stopRenewing(): void {
    this.#isClosed = true;
    this.#closeController.abort(new Error('the host is leaving the fleet'));
  }

  async #refresh(): Promise<void> {
    const countsBefore = new Map(this.#placedCounts);
    this.#livingHosts = await this.#parts.rows.listLiving();
    for (const [host, count] of countsBefore)
      this.#placedCounts.set(host, Math.max(0, (this.#placedCounts.get(host) ?? 0) - count));
    this.#hostsReadListener();
  }

  /** Ends the sessions after the lease was lost, and joins again as a host without sessions. */
  #onLeaseLost(why: string): Promise<void> {
    this.#rejoinPromise ??= this.#endAndRejoin(why).finally(() => {
      this.#rejoinPromise = undefined;
    });
    return this.#rejoinPromise;
  }

  async #endAndRejoin(why: string): Promise<void> {
    const { log, clock } = this.#parts;
    this.#lease = undefined;
    log.error('fleet.lease_lost', { why });
    await this.#endSessions(why);
    while (!this.#isClosed) {
      try {
        await withTimeout(3 * this.#responseTimeoutMs, 'the host to join again', () => this.join());
        return;
      } catch (error) {
        log.warn('fleet.not_joined', { reason: reason(error) });
        await clock.sleep(this.#renewIntervalMs, this.#closeController.signal).catch(() => {});
      }
    }
  }
}
