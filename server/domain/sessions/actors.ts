// Who ends a session, for each reason there is, and how that is said; for the event list.
import { END_REASONS, type EndReason } from '../../../contract/sessions.ts';
import type { Actor } from '../../engines/store/rows/events.ts';
import type { SessionEnd } from '../../engines/store/rows/sessions.ts';

const ACTORS: Readonly<Record<EndReason, Actor['kind']>> = {
  released: 'agentKey',
  client_disconnected: 'client',
  browser_closed: 'client',
  timed_out: 'clock',
  connect_timeout: 'clock',
  crashed: 'browser',
  out_of_memory: 'browser',
  start_failed: 'service',
  proxy_failed: 'service',
  egress_limit: 'service',
  disk_limit: 'service',
  operator: 'operator',
  drained: 'operator',
  host_lost: 'service',
  service_restart: 'service',
};

/** What happened, where whoever ends a session has not more to say. */
const WORDS: Readonly<Partial<Record<EndReason, string>>> = {
  released: 'a caller released it',
  client_disconnected: 'its last client left, and none came back in time',
  browser_closed: 'a client closed the browser',
  timed_out: 'its time limit was reached',
  connect_timeout: 'no client connected in time',
  drained: 'the operator had the service end its sessions and stop',
};

/** The end with its actor and in words: its own, or those that go with such a reason. */
export function told(end: SessionEnd): SessionEnd & { readonly by: Actor } {
  const known = END_REASONS.find(word => word === end.reason);
  const detail = end.detail ?? (known && WORDS[known]);
  return {
    ...end,
    ...(detail === undefined ? {} : { detail }),
    by: end.by ?? { kind: known ? ACTORS[known] : 'service' },
  };
}
