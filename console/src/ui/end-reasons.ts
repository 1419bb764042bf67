// Why sessions end, in words.
import type { EndReason } from '../../../contract/sessions.ts';

export const END_REASON_WORDS: Readonly<Record<EndReason, string>> = {
  released: 'Released by a caller',
  client_disconnected: 'The last client disconnected',
  browser_closed: 'A client closed the browser',
  timed_out: 'Timed out',
  connect_timeout: 'No client connected in time',
  crashed: 'The browser crashed',
  out_of_memory: 'The browser ran out of memory',
  start_failed: 'The browser failed to start',
  egress_limit: 'The network budget was used up',
  disk_limit: 'The disk limit was reached',
  operator: 'Ended by the operator',
  drained: 'The service was shut down',
  credit_exhausted: 'The credit of the account was used up',
  service_restart: 'Could not be continued after a service restart',
  host_lost: 'The machine that was running the session stopped responding',
};

export const endReasonWords = (reason: EndReason): string => END_REASON_WORDS[reason];
