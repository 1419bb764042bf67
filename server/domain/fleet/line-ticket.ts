// The place of a session create in the line of the fleet. The host that received the request records the ticket, and
// sends it to the host that is to admit the create. Only a request with a valid token of another host may carry a
// ticket.
import type { IncomingMessage } from 'node:http';
import type { QueuePosition } from '../../engines/store/rows/line.ts';
import { forwardedFrom } from '../../kit/forwarded.ts';
import type { Refusal } from '../limits/refusals.ts';

export const LINE_HEADER = 'x-berth-line';

/** A ticket without a place is for a create that has not waited. Such a create comes after all waiters. */
export interface QueueTicket extends Partial<QueuePosition> {
  readonly waitedMs: number;
  /**
   * Set if no host admits the create and the operation reports the refusal itself, in a response that is not an HTTP
   * error.
   */
  readonly finalRefusal?: Refusal;
}

const tickets = new WeakMap<object, QueueTicket>();

export const noteTicket = ({ headers }: Pick<IncomingMessage, 'headers'>, ticket: QueueTicket): void =>
  void tickets.set(headers, ticket);

/**
 * Returns the ticket that this host has noted for the request or, if another host forwarded the request, the ticket in
 * its header. Undefined if there is neither: the request then gets a place in the queue of this host.
 */
export function ticketOf(request: Pick<IncomingMessage, 'headers'>): QueueTicket | undefined {
  const text = forwardedFrom(request) && request.headers[LINE_HEADER];
  return tickets.get(request.headers) ?? (typeof text === 'string' ? parseTicket(text) : undefined);
}

export const ticketText = ({ waitedMs, turn, place }: QueueTicket): string =>
  [waitedMs, turn, place].filter(number => number !== undefined).join(' ');

function parseTicket(text: string): QueueTicket | undefined {
  const [, waitedText, turn, place] = /^(\d{1,9})(?: (\d{1,10}) (\d{1,15}))?$/.exec(text) ?? [];
  if (waitedText === undefined) return undefined;
  return { waitedMs: Number(waitedText), ...(place === undefined ? {} : { turn: Number(turn), place: Number(place) }) };
}
