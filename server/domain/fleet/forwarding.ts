// The interface that the HTTP and the WebSocket entry need to pass a request on to another host. entry/forward
// implements it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { LivingHost } from '../../engines/store/rows/hosts.ts';
import type { HostId } from '../../kit/ids.ts';
import type { Refusal } from '../limits/refusals.ts';
import { acceptForwarded } from './host-tokens.ts';
import type { LineOutcome, LineRequest } from './line.ts';
import type { QueueTicket } from './line-ticket.ts';
import type { OwnedKind } from './owners.ts';

/** Another host of the fleet whose lease has not expired. */
export type Peer = LivingHost;

export interface PassOptions {
  /** The body, if it has already been read. Otherwise it is read from the request. */
  readonly body?: Buffer;
  /** Both hosts log the request with this id. */
  readonly requestId: string;
  /** Called once, when the head of the response has arrived. Returns the response object to write to. */
  readonly begin: () => ServerResponse;
  /**
   * The ticket, if the request is a create. Another host could take the create instead, so `pass` does not wait for a
   * host that does not accept the connection.
   */
  readonly ticket?: QueueTicket;
}

/**
 * `refused`: the host does not admit the create, but another host may, or the same host may later. `unreached`: the
 * host does not accept connections, and another host may admit the create. In both cases, no response was sent.
 */
export type PassOutcome = 'answered' | 'unreached' | { readonly refused: Refusal };

export interface Forwarding {
  /** Whether no other host is known, so that no owner has to be looked up. */
  readonly isAlone: boolean;
  /** Marks a request that another host passed on. Throws if its token is not valid. */
  acceptForwarded(request: IncomingMessage): void;
  /** Returns the other host that owns the object. Undefined if there is no such host. */
  otherOwner(kind: OwnedKind, id: string, application?: string): Promise<Peer | undefined>;
  readonly host: HostId;
  /** Returns the host that should start a browser for a request. Undefined if no host outside `triedHosts` can. */
  chooseHost(region: string | undefined, triedHosts: ReadonlySet<HostId>): Peer | 'here' | undefined;
  /**
   * Returns the region in which the browser must be started, for a request that names a region. Undefined if any host
   * can start it.
   */
  regionFor(region: string | undefined): string | undefined;
  pass(to: Peer, request: IncomingMessage, options: PassOptions): Promise<PassOutcome>;
  /** Waits in the line, which is the fleet's queue of creates. */
  wait<T>(request: Omit<LineRequest<T>, 'maxWaiting'>): Promise<LineOutcome<T>>;
  /** Counts a create that no host admitted. */
  countRefusal(why: Refusal['why']): void;
  /** Connects a WebSocket client to the host. */
  passUpgrade(to: Peer, request: IncomingMessage, connection: Duplex, head: Buffer): Promise<void>;
}

const rejectCall = (): Promise<never> => Promise.reject(new Error('there is no other host'));

/** The implementation for a single host. */
export const noForwarding = (host: HostId): Forwarding => ({
  isAlone: true,
  host,
  acceptForwarded: request => acceptForwarded(undefined, request),
  otherOwner: async () => undefined,
  chooseHost: () => 'here',
  regionFor: () => undefined,
  pass: rejectCall,
  wait: rejectCall,
  countRefusal: () => {},
  passUpgrade: rejectCall,
});
