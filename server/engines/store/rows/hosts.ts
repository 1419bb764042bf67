// Server processes that run sessions, and the leases of those that share the database with others.
import type { ApplicationId, HostId, SessionId } from '../../../kit/ids.ts';

export const HOST_STATES = ['alone', 'up', 'away', 'left', 'lost', 'removed'] as const;
/**
 * `alone`: without a lease. `up`: renews its lease. `away`: restarts, and keeps its sessions until its lease runs out. `left`:
 * stopped without sessions. `lost`: its lease ran out. `removed`: the operator removed it from the list.
 */
export type HostState = (typeof HOST_STATES)[number];

export interface HostRow {
  readonly id: HostId;
  readonly region: string;
  readonly slots: number;
  readonly startedAt: Date;
}

/** What a host says about itself when it joins. */
export interface JoiningHost extends HostRow {
  /** Of this process: the next one, or this one after it lost its lease, has another. */
  readonly incarnation: string;
  /** Where other hosts reach it. */
  readonly url: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly version: string;
  /** Equal for hosts with the same secret. */
  readonly secretMark: string;
  /** How far its clock is ahead of the database's, in milliseconds. */
  readonly clockMs: number;
}

/** A host whose lease has not run out. */
export interface LivingHost extends JoiningHost {
  readonly state: 'up' | 'away';
  readonly draining: boolean;
  readonly warm: number;
  /** Equal for hosts that store files in the same place. */
  readonly storeMark: string;
  /** Sessions that have not ended. */
  readonly used: number;
}

export interface ListedHost extends HostRow {
  readonly state: HostState;
  readonly draining: boolean;
  readonly isFresh: boolean;
  readonly url: string | null;
  readonly version: string | null;
  readonly labels: Readonly<Record<string, string>>;
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
  /** Inserts or replaces the row of a process that shares its database with no other. */
  announce(row: HostRow): Promise<void>;
  /** The database's clock. */
  now(): Promise<Date>;
  /**
   * Inserts or replaces the row of a host with a lease. `judge` gets the other living hosts under a lock that all joins
   * take, and returns the mark of this host's file storage; if it throws, nothing is changed. `isStart`: of a process, which
   * ends the draining of one before it that is over. Resolves to whether the lease of the row before had been taken as lost.
   */
  join(
    row: JoiningHost,
    leaseMs: number,
    judge: (others: readonly LivingHost[]) => Promise<{ readonly storeMark: string }>,
    isStart: boolean,
  ): Promise<{ readonly wasLost: boolean }>;
  /** Extends the lease. Undefined: another host has taken it as lost, or another process has the row. */
  renew(
    host: Pick<JoiningHost, 'id' | 'incarnation'>,
    leaseMs: number,
    warm: number,
  ): Promise<{ readonly draining: boolean } | undefined>;
  /** The hosts whose lease has not run out, with their use. */
  living(): Promise<LivingHost[]>;
  /** Ends the lease, or leaves it for the next process of this host. */
  leave(host: Pick<JoiningHost, 'id' | 'incarnation'>, state: 'away' | 'left', leaseMs: number): Promise<void>;
  /** Leaves the lease of a host whose process has ended to the next one. Said by who starts it. */
  restarts(id: HostId, endedAt: Date, leaseMs: number): Promise<void>;
  /**
   * Takes hosts as lost whose lease has run out. None while the database has been up for less than a lease, because
   * nobody could renew before.
   */
  lose(leaseMs: number): Promise<HostId[]>;
  /** Sessions that have not ended, of lost hosts. */
  orphans(batch: number): Promise<SessionId[]>;
  /** Lost hosts that still lock contexts. */
  lostWithContexts(): Promise<HostId[]>;
  /** Gives the work that lost hosts have left to this one: calls of operations, and films that were asked for. */
  inherit(to: HostId): Promise<number>;
  hostOfSession(id: string): Promise<Owner | undefined>;
  hostOfDownload(id: string): Promise<Owner | undefined>;
  hostOfInvocation(id: string): Promise<Owner | undefined>;
  /** Of its session. */
  hostOfHandoff(id: string): Promise<Owner | undefined>;
  /** Undefined: it names no session. */
  hostOfAction(id: string): Promise<Owner | undefined>;
  list(): Promise<ListedHost[]>;
  /** Newest first. */
  sessionsOn(id: HostId, limit: number): Promise<SessionOnHost[]>;
  /** False if there is no such host. */
  drain(id: HostId, draining: boolean): Promise<boolean>;
  /** Removes a host that does not live from the list. False if it lives, or is not there. */
  remove(id: HostId): Promise<boolean>;
}

export interface Owner {
  readonly hostId: HostId;
  readonly applicationId: string;
}
