// Hosts, and the leases of the hosts that share one database.
import type { ApplicationId, HostId, SessionId } from '../../../kit/ids.ts';

const HOST_STATES = ['alone', 'up', 'away', 'left', 'lost', 'removed'] as const;
/**
 * `alone`: without a lease. `up`: renews its lease. `away`: is restarting, and keeps its sessions until its lease runs
 * out. `left`: stopped without sessions. `lost`: its lease ran out. `removed`: the operator removed it from the list.
 */
export type HostState = (typeof HOST_STATES)[number];

export interface HostRow {
  readonly id: HostId;
  readonly region: string;
  readonly slots: number;
  readonly startedAt: Date;
}

/** The facts that a host reports about itself when it joins. */
export interface JoiningHost extends HostRow {
  /**
   * Identifies this process. The next process of the host has a different value, and so does this process when it joins
   * again after it has lost its lease.
   */
  readonly incarnation: string;
  /** The address at which other hosts reach this host. */
  readonly url: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly version: string;
  /** A fingerprint of the host's secret: equal on hosts with the same secret, and it does not reveal the secret. */
  readonly secretMark: string;
  /** How far the host's clock is ahead of the database's, in milliseconds. */
  readonly clockMs: number;
}

/** A host whose lease has not run out. */
export interface LivingHost extends JoiningHost {
  readonly state: 'up' | 'away';
  readonly draining: boolean;
  /** The number of warm browsers: started in advance, and not used by a session yet. */
  readonly warm: number;
  /** A mark that is equal on all hosts that have the same file storage. */
  readonly storeMark: string;
  /** The number of sessions that have not ended. */
  readonly used: number;
}

export interface ListedHost extends HostRow {
  readonly state: HostState;
  readonly draining: boolean;
  /** Whether the host's lease has not run out. */
  readonly isFresh: boolean;
  readonly url: string | null;
  readonly version: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** The number of sessions that have not ended. */
  readonly used: number;
  readonly leaseUntil: Date | null;
}

/** A session that has not ended. */
export interface SessionOnHost {
  readonly id: SessionId;
  readonly applicationId: ApplicationId;
  readonly applicationName: string;
  readonly status: 'PENDING' | 'RUNNING';
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

export interface Hosts {
  /** Inserts or replaces the row of a process that does not share its database. */
  announce(row: HostRow): Promise<void>;
  /** Returns the time of the database's clock. */
  now(): Promise<Date>;
  /**
   * Inserts or replaces the row of a host with a lease. `check` gets the other living hosts under a lock that all joins
   * take, and returns the mark of this host's file storage. If `check` throws, nothing is changed. `isStart`: the
   * process has just started. If the earlier process of this host has ended, the host then no longer drains. Resolves
   * to whether the lease in the earlier row was marked as lost.
   */
  join(
    row: JoiningHost,
    leaseMs: number,
    check: (otherHosts: readonly LivingHost[]) => Promise<{ readonly storeMark: string }>,
    isStart: boolean,
  ): Promise<{ readonly wasLost: boolean }>;
  /**
   * Extends the lease. Undefined if another host has marked the lease as lost, or if the row belongs to another
   * process.
   */
  renew(
    host: Pick<JoiningHost, 'id' | 'incarnation'>,
    leaseMs: number,
    warmCount: number,
  ): Promise<{ readonly draining: boolean } | undefined>;
  /** Returns the hosts whose lease has not run out, with the number of their sessions. */
  listLiving(): Promise<LivingHost[]>;
  /** Gives up the lease (`left`), or keeps the lease for the next process of this host (`away`). */
  leave(host: Pick<JoiningHost, 'id' | 'incarnation'>, state: 'away' | 'left', leaseMs: number): Promise<void>;
  /**
   * Called when the supervisor reports that it is restarting the process of a host. Extends the host's lease, so that
   * the next process can continue it.
   */
  markRestarting(id: HostId, endedAt: Date, leaseMs: number): Promise<void>;
  /**
   * Marks hosts whose lease has run out as lost. Marks none while the database has been up for less than the length of
   * a lease, because hosts could not renew while it was down.
   */
  markLost(leaseMs: number): Promise<HostId[]>;
  /** Sessions of lost hosts that have not ended. */
  orphans(batchSize: number): Promise<SessionId[]>;
  /** Lost hosts that still lock contexts. */
  lostHostsWithContexts(): Promise<HostId[]>;
  /** Assigns the unfinished work of lost hosts to this host: calls of operations, and MP4 files that were requested. */
  reassignLostWork(to: HostId): Promise<number>;
  hostOfSession(id: string): Promise<Owner | undefined>;
  hostOfDownload(id: string): Promise<Owner | undefined>;
  hostOfInvocation(id: string): Promise<Owner | undefined>;
  /** Returns the owner of the hand-off's session. */
  hostOfHandoff(id: string): Promise<Owner | undefined>;
  /** Returns the owner of the Action's session. Undefined if there is no such session. */
  hostOfAction(id: string): Promise<Owner | undefined>;
  list(): Promise<ListedHost[]>;
  /** Newest first. */
  sessionsOn(id: HostId, limit: number): Promise<SessionOnHost[]>;
  /** Sets whether the host is draining. False if there is no such host. */
  drain(id: HostId, draining: boolean): Promise<boolean>;
  /**
   * Removes a host from the list. False if the host is `up` or `away`, has sessions that have not ended, or does not
   * exist.
   */
  remove(id: HostId): Promise<boolean>;
}

export interface Owner {
  readonly hostId: HostId;
  readonly applicationId: string;
}
