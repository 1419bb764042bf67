// What the HTTP and the WebSocket entry need to pass a request on to another host. entry/forward does it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { LivingHost } from '../../engines/store/rows/hosts.ts';
import type { HostId } from '../../kit/ids.ts';
import type { Refusal } from '../limits/refusals.ts';
import { admitForwarded } from './host-tokens.ts';
import type { LineOutcome, LineRequest } from './line.ts';
import type { LineTicket } from './line-ticket.ts';
import type { Owned } from './owners.ts';

/** Another host that lives. */
export type Peer = LivingHost;

export interface PassOptions {
  /** The body, if it was read already. Otherwise it is read from the request. */
  readonly body?: Buffer;
  /** Both hosts log the request with this id. */
  readonly requestId: string;
  /** Called once with the head of the answer: returns where it is written. */
  readonly begin: () => ServerResponse;
  /** Of a create: another host may do as well, so one that does not accept the connection is not waited for. */
  readonly ticket?: LineTicket;
}

/**
 * `refused`: the host does not admit the create, and another one or a later time may; nothing was answered. `unreached`: the same, because it
 * accepts no connection.
 */
export type PassOutcome = 'answered' | 'unreached' | { readonly refused: Refusal };

export interface Forwarding {
  /** No other host is known, so nothing has to be looked up. */
  readonly isAlone: boolean;
  /** Notes a request that another host passed on. Throws if its token is not valid. */
  admit(request: IncomingMessage): void;
  /** The other host that has it. */
  elsewhere(kind: Owned, id: string, application?: string): Promise<Peer | undefined>;
  readonly host: HostId;
  /** The host that should start a browser for a request. Undefined: none of the hosts that are left. */
  place(region: string | undefined, tried: ReadonlySet<HostId>): Peer | 'here' | undefined;
  /** The region whose hosts must start a browser for a request that names one. Undefined: any will do. */
  regionFor(region: string | undefined): string | undefined;
  pass(to: Peer, request: IncomingMessage, options: PassOptions): Promise<PassOutcome>;
  /** Waits in the line of the fleet. */
  wait<T>(request: Omit<LineRequest<T>, 'maxWaiting'>): Promise<LineOutcome<T>>;
  /** Counts a create that no host admitted. */
  refused(why: Refusal['why']): void;
  /** Joins the connection of a WebSocket client to the host. */
  passUpgrade(to: Peer, request: IncomingMessage, connection: Duplex, head: Buffer): Promise<void>;
}

const alone = (): Promise<never> => Promise.reject(new Error('there is no other host'));

/** With one host. */
export const noForwarding = (host: HostId): Forwarding => ({
  isAlone: true,
  host,
  admit: request => admitForwarded(undefined, request),
  elsewhere: async () => undefined,
  place: () => 'here',
  regionFor: () => undefined,
  pass: alone,
  wait: alone,
  refused: () => {},
  passUpgrade: alone,
});
