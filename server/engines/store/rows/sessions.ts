// The rows of sessions, and the operations that change their state.

import type { ApplicationId, HostId, KeyId, SessionId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';
import type { Shortage } from './credits.ts';
import type { Actor } from './events.ts';
import type { ApplicationUse, Counts, PlaceOptions } from './place.ts';

export type SessionStatus = 'PENDING' | 'RUNNING' | 'COMPLETED' | 'TIMED_OUT' | 'ERROR';

/**
 * The data with which the server finds the session's browser after a restart. The format is defined by engines/slots
 * and engines/browser.
 */
export type BoxJson = JsonObject;

export interface SessionRow {
  readonly id: SessionId;
  readonly applicationId: ApplicationId;
  readonly hostId: HostId;
  readonly keyId?: KeyId;
  readonly status: SessionStatus;
  readonly region: string;
  readonly keepAlive: boolean;
  readonly userMetadata: JsonObject;
  readonly settings: JsonObject;
  readonly proxyBytes: number;
  /** The last stored count of all bytes sent and received over the network. */
  readonly egressBytes: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly startedAt?: Date;
  readonly expiresAt: Date;
  readonly endedAt?: Date;
  /** Set once, before the browser is closed. `status` changes later, when the browser has ended. */
  readonly end?: SessionEnd;
  /** The time by which the first client must connect. Absent once a client has connected, or with keepAlive. */
  readonly connectBy?: Date;
  /** Set when the last client disconnects: the session ends at this time unless a client connects. */
  readonly releaseAt?: Date;
  /** Whether a client was attached at the last write to the database. */
  readonly attached: boolean;
  readonly box?: BoxJson;
  /**
   * The redacted URL and the title of the page that changed last. Both are absent until a page has shown a web address.
   */
  readonly pageUrl?: string;
  readonly pageTitle?: string;
}

export type LastPageRow = Required<Pick<SessionRow, 'id' | 'pageUrl' | 'pageTitle'>>;

export interface SessionEnd {
  readonly status: 'COMPLETED' | 'TIMED_OUT' | 'ERROR';
  readonly reason: string;
  /** A description of what happened. Never shown to applications other than the session's own. */
  readonly detail?: string;
  /** The actor that decided the end. Absent if the service decided it. */
  readonly by?: Actor;
}

export type NewSession = Pick<
  SessionRow,
  'id' | 'applicationId' | 'hostId' | 'region' | 'keepAlive' | 'userMetadata' | 'settings' | 'createdAt' | 'expiresAt'
> & {
  readonly keyId?: KeyId;
  readonly connectBy?: Date;
  /**
   * Digest of the request, to recognize a create that is repeated because its response was lost. See
   * `claimLostResponse`.
   */
  readonly createDigest?: Buffer;
};

export interface MetadataTerm {
  /** `user_metadata['a']['b']:'value'` has path ['a','b'] and value 'value'. Only strings match. */
  readonly path: readonly string[];
  readonly value: string;
}

export interface SessionFilter {
  readonly statuses?: readonly SessionStatus[];
  readonly metadata?: readonly MetadataTerm[];
  /**
   * Each word must be in the id, the metadata, the last page or the end reason. Searches at most SEARCHED_SESSIONS_MAX
   * sessions.
   */
  readonly words?: readonly string[];
  readonly endReasons?: readonly string[];
  readonly keyId?: KeyId;
  /** The minimum duration of the session: from its creation to its end, or until now if the session has not ended. */
  readonly atLeastSeconds?: number;
  readonly atMostSeconds?: number;
  /** Only sessions that were created at this time or later. */
  readonly createdAfter?: Date;
  /** Only sessions that were created before this time. */
  readonly createdBefore?: Date;
  readonly limit: number;
  /** Only sessions that follow this one in the list. */
  readonly before?: SessionId;
}

/** The maximum number of rows that one request searches for words. */
export const SEARCHED_SESSIONS_MAX = 10_000;

/**
 * `use`: the usage before the session was placed, if limits were checked. `over`: the usage has reached a limit. `full`:
 * the limits allow the session, but the host has no free slot, or its free slots are reserved for waiting creates.
 * `behind`: another create of the application is waiting and comes first. The value is the latest refusal of that
 * create. `short`: the account has too little credit.
 */
export type PlaceOutcome =
  | { readonly placed: SessionRow; readonly use?: ApplicationUse }
  | { readonly over: ApplicationUse }
  | { readonly short: Shortage }
  | { readonly behind: JsonObject }
  | { readonly full: { readonly slots: number; readonly used: number } };

/** Each change writes its event in the same statement, so that rows and events always agree. */
export interface SessionRows {
  /**
   * Inserts a PENDING session if the application's limits allow it and the host has a free slot (fewer non-terminal
   * rows than hosts.slots). Locks the application's limits, then the host. Without `options` only the host's slots are
   * checked.
   */
  place(row: NewSession, options?: PlaceOptions): Promise<PlaceOutcome>;
  /**
   * Returns the number of non-terminal sessions of the application, the number of sessions created after
   * `createdAfter`, and the network bytes of the UTC day of `now`.
   */
  countOf(application: ApplicationId, createdAfter: Date, now: Date): Promise<Counts>;
  /** Records whether the response to the create was delivered. */
  recordResponse(id: SessionId, delivered: boolean): Promise<void>;
  /**
   * Returns the oldest open session with this key and digest that was created after `since` and whose response was
   * lost. Marks the response as not yet delivered.
   */
  claimLostResponse(key: KeyId, digest: Buffer, since: Date): Promise<SessionRow | undefined>;
  /** After a restart: marks the responses that were not yet delivered as lost. Returns their number. */
  markResponsesLost(host: HostId): Promise<number>;
  get(application: ApplicationId, id: SessionId): Promise<SessionRow | undefined>;
  /**
   * Finds a session by its id, regardless of its application. Only for callers that have already authorized access to
   * the session, or that act for the service.
   */
  byId(id: SessionId): Promise<SessionRow | undefined>;
  /** Newest first. */
  list(application: ApplicationId, filter: SessionFilter): Promise<SessionRow[]>;
  /** With `words`: the last session that `list` searched. Undefined if it searched all sessions. */
  lastSearched(application: ApplicationId, filter: SessionFilter): Promise<SessionId | undefined>;
  /** Called before anything is sent to the browser, so that a later process can find the browser. */
  setBox(id: SessionId, box: BoxJson, now: Date): Promise<void>;
  /**
   * Changes the status from PENDING to RUNNING. Returns undefined if the end has already been decided. `box`: the box
   * of the warm browser that was claimed.
   */
  markRunning(id: SessionId, startedAt: Date, box?: BoxJson): Promise<SessionRow | undefined>;
  /** Changes the session only while it is RUNNING and its end has not been decided. */
  change(
    application: ApplicationId,
    id: SessionId,
    change: { userMetadata?: JsonObject; expiresAt?: Date; by?: Actor },
    now: Date,
  ): Promise<SessionRow | undefined>;
  /**
   * Decides the end, unless an end was already decided. Returns the row with its end; undefined if the session is
   * already terminal.
   */
  decideEnd(id: SessionId, end: SessionEnd, now: Date): Promise<SessionRow | undefined>;
  /**
   * Sets the status of the decided end, clears `box`, and settles the credit that the session held. Idempotent. Returns
   * undefined if no end was decided. `retention`: when the files and the row are due for deletion. Without it, they are
   * kept.
   */
  finish(
    id: SessionId,
    endedAt: Date,
    proxyBytes: number,
    retention?: { readonly filesDueAt: Date; readonly forgetDueAt: Date },
  ): Promise<SessionRow | undefined>;
  /** Sets the byte counts. They never decrease. Has no effect after the end. */
  setTraffic(id: SessionId, traffic: { proxyBytes: number; egressBytes: number }): Promise<void>;
  /** Sets the last page of each session. Changes nothing else in the row. Has no effect after the end. */
  setLastPages(pages: readonly LastPageRow[]): Promise<void>;
  /** Call when a client has connected. Clears connectBy and releaseAt. `clients`: the current number of clients. */
  recordClientConnected(id: SessionId, now: Date, clients?: number): Promise<void>;
  /** Call when a client has disconnected while other clients remain connected. */
  recordClientDisconnected(id: SessionId, now: Date, clients: number, why?: string): Promise<void>;
  /** Call when the last client has disconnected. */
  recordLastClientDisconnected(id: SessionId, releaseAt: Date | undefined, now: Date, why?: string): Promise<void>;
  /** Non-terminal sessions of this host whose earliest timer has expired, or whose end is decided. */
  due(host: HostId, now: Date, batchSize: number): Promise<SessionRow[]>;
  /** Every non-terminal session of this host. */
  ofHost(host: HostId): Promise<SessionRow[]>;
  /**
   * After a restart, when no client is attached: restarts the connect and disconnect timers so that they expire at
   * `notBefore` at the earliest.
   */
  resumeTimers(host: HostId, notBefore: Date): Promise<void>;
  countByStatus(host: HostId): Promise<Readonly<Partial<Record<SessionStatus, number>>>>;
  /** Total browser minutes and proxy bytes of an application, for the compatibility mount. */
  usage(application: ApplicationId): Promise<{ browserMinutes: number; proxyBytes: number }>;
}
