import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noteForwarded } from '../../kit/forwarded.ts';
import { LINE_HEADER, noteTicket, ticketOf, ticketText } from './line-ticket.ts';

const requestWith = (text: string) => ({ headers: { [LINE_HEADER]: text } });

test('accepts a queue ticket header from another host, but not from a caller', () => {
  const ticket = { waitedMs: 3_600_000, turn: 2, place: 7 };
  const request = requestWith(ticketText(ticket));
  assert.equal(ticketOf(request), undefined);
  noteForwarded(request, { host: 'another', ip: '192.0.2.1', address: '192.0.2.1' });
  assert.deepEqual(ticketOf(request), ticket);
});

test('uses the queue ticket recorded on this host instead of the header', () => {
  const request = requestWith('3600000 0 0');
  noteTicket(request, { waitedMs: 5 });
  assert.deepEqual(ticketOf(request), { waitedMs: 5 });
});

test('ignores a malformed queue ticket header', () => {
  for (const text of ['', '1 2', '-1', '1 2 3 4', '1e3', '1234567890', '1  2 3']) {
    const request = requestWith(text);
    noteForwarded(request, { host: 'another', ip: '192.0.2.1', address: '192.0.2.1' });
    assert.equal(ticketOf(request), undefined, text);
  }
});
