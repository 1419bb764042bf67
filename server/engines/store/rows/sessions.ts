// The rows of sessions, from the create to the end.

import type { ApplicationId, HostId, KeyId, SessionId } from '../../../kit/ids.ts';
import type { JsonObject } from '../../../kit/json.ts';
import type { Actor } from './events.ts';
import type { ApplicationUse, PlaceOptions } from './place.ts';

export type SessionStatus = 'PENDING' | 'RUNNING' | 'COMPLETED' | 'TIMED_OUT' | 'ERROR';

/** What the next process needs to find the session's browser. Defined by engines/slots and engines/browser. */
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
  /** All bytes to and from the network, as last written; counted only where it is requested. */
  readonly egressBytes: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly startedAt?: Date;
  readonly expiresAt: Date;
  readonly endedAt?: Date;
  /** The decided end: set once, before the browser is closed; `status` follows when the browser has ended. */
  readonly end?: SessionEnd;
  /** The first client must connect before this; absent once one has, or with keepAlive. */
  readonly connectBy?: Date;
  /** The last client disconnected, and the session ends at this time unless one connects. */
  readonly releaseAt?: Date;
  /** Whether a client is attached, as last written. */
  readonly attached: boolean;
  readonly box?: BoxJson;
}

export interface SessionEnd {
  readonly status: 'COMPLETED' | 'TIMED_OUT' | 'ERROR';
  readonly reason: string;
  /** What happened, in words; never shown to other applications. */
  readonly detail?: string;
  /** Who decided it, for the event list only. Absent: the service. */
  readonly by?: Actor;
}

export type NewSession = Pick<
  SessionRow,
  'id' | 'applicationId' | 'hostId' | 'region' | 'keepAlive' | 'userMetadata' | 'settings' | 'createdAt' | 'expiresAt'
> & {
  readonly keyId?: KeyId;
  readonly connectBy?: Date;
  /** Digest of the request, for a create whose response may get lost: see `claimLost`. */
  readonly createDigest?: Buffer;
};

export interface MetadataTerm {
  /** `user_metadata['a']['b']:'value'` is path ['a','b'], value 'value'. Only string leaves match. */
  readonly path: readonly string[];
  readonly value: string;
}

export interface SessionFilter {
  readonly statuses?: readonly SessionStatus[];
  readonly metadata?: readonly MetadataTerm[];
  /** Each must be in the id, the metadata or the end reason. Searches at most SEARCHED_SESSIONS_MAX sessions. */
  readonly words?: readonly string[];
  readonly endReasons?: readonly string[];
  readonly keyId?: KeyId;
  /** At this time or later. */
  readonly createdAfter?: Date;
  /** Before this time. */
  readonly createdBefore?: Date;
  readonly limit: number;
  /** The page after this session. */
  readonly before?: SessionId;
}

/** One request reads no more rows than this to find words. */
export const SEARCHED_SESSIONS_MAX = 10_000;

/** `full`: the application has room, but the host has not. */
export type Placed<Admitted, Refusal> =
  | { readonly placed: SessionRow; readonly admitted?: Admitted }
  | { readonly refused: Refusal }
  | { readonly full: { readonly slots: number; readonly used: number } };

/** Each change writes its event in the same statement, so that rows and events always agree. */
export interface SessionRows {
  /**
   * Inserts PENDING if the application's limits allow it and the host has a free slot (non-terminal rows < hosts.slots).
   * Decided under locks, the application's limits first, then the host. Without `options` only the host counts.
   */
  place<Admitted, Refusal>(
    row: NewSession,
    options?: PlaceOptions<Admitted, Refusal>,
  ): Promise<Placed<Admitted, Refusal>>;
  /** Non-terminal sessions of the application, all that were created after a time, and the bytes of the UTC day. */
  countOf(
    application: ApplicationId,
    createdAfter: Date,
    now: Date,
  ): Promise<Pick<ApplicationUse, 'living' | 'created' | 'egressBytes'>>;
  /** Records whether the response to the create was delivered, which was owed until now. */
  answered(id: SessionId, delivered: boolean): Promise<void>;
  /** The oldest open session of this key and digest since then whose response was lost; from now on the claimer is owed it. */
  claimLost(key: KeyId, digest: Buffer, since: Date): Promise<SessionRow | undefined>;
  /** After a restart: responses that were owed are lost. Returns their number. */
  loseAnswers(host: HostId): Promise<number>;
  get(application: ApplicationId, id: SessionId): Promise<SessionRow | undefined>;
  /** For the connect path, where the signing key, bound to the id, is the credential. */
  byId(id: SessionId): Promise<SessionRow | undefined>;
  /** Newest first. */
  list(application: ApplicationId, filter: SessionFilter): Promise<SessionRow[]>;
  /** With `words`: the last session that `list` searched. Undefined: it searched all. */
  searchedTo(application: ApplicationId, filter: SessionFilter): Promise<SessionId | undefined>;
  /** Written before anything is sent to the browser, so that the next process can find it. */
  setBox(id: SessionId, box: BoxJson, now: Date): Promise<void>;
  /** PENDING -> RUNNING; undefined when it was ended, or its end decided, meanwhile. `box`: of a warm browser. */
  run(id: SessionId, startedAt: Date, box?: BoxJson): Promise<SessionRow | undefined>;
  /** Only while RUNNING and no end is decided. */
  change(
    application: ApplicationId,
    id: SessionId,
    change: { userMetadata?: JsonObject; expiresAt?: Date; by?: Actor },
    now: Date,
  ): Promise<SessionRow | undefined>;
  /** Decides the end; the first decision stands. Returns the row with the end that stands, undefined when already terminal. */
  decideEnd(id: SessionId, end: SessionEnd, now: Date): Promise<SessionRow | undefined>;
  /**
   * Moves to the decided end state. Clears `box`. Idempotent; undefined when no end was decided. `kept`: when its files are
   * due to go, and when the row itself is; without it they stay.
   */
  finish(
    id: SessionId,
    endedAt: Date,
    proxyBytes: number,
    kept?: { readonly filesDueAt: Date; readonly forgetDueAt: Date },
  ): Promise<SessionRow | undefined>;
  /** The bytes so far. Never decreases; without effect once the session has ended. */
  countTraffic(id: SessionId, traffic: { proxyBytes: number; egressBytes: number }): Promise<void>;
  /** A client connected: clears connectBy and releaseAt. `clients`: their number, including it. */
  clientCame(id: SessionId, now: Date, clients?: number): Promise<void>;
  /** A client disconnected, others stay. */
  clientLeft(id: SessionId, now: Date, clients: number, why?: string): Promise<void>;
  /** The last client disconnected. */
  clientsGone(id: SessionId, releaseAt: Date | undefined, now: Date, why?: string): Promise<void>;
  /** Non-terminal sessions of this host whose earliest due time has passed, or whose end is decided. */
  due(host: HostId, now: Date, batch: number): Promise<SessionRow[]>;
  /** Every non-terminal session of this host. */
  ofHost(host: HostId): Promise<SessionRow[]>;
  /** After a restart: no client is attached; connect and disconnect timers restart, and end at `notBefore` or later. */
  resumeTimers(host: HostId, notBefore: Date): Promise<void>;
  countByStatus(host: HostId): Promise<Readonly<Partial<Record<SessionStatus, number>>>>;
  /** Sum of minutes and proxy bytes of an application, for the compatibility mount. */
  usage(application: ApplicationId): Promise<{ browserMinutes: number; proxyBytes: number }>;
}
