// Who ends a session, for each reason there is; for the event list.
import { END_REASONS, type EndReason } from '../../../contract/sessions.ts';
import type { Actor, SessionEnd } from '../../engines/store/store.ts';

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

/** The end with its actor: the one it names, or who ends sessions for such a reason. */
export function withActor(end: SessionEnd): SessionEnd & { readonly by: Actor } {
  const known = END_REASONS.find(word => word === end.reason);
  return { ...end, by: end.by ?? { kind: known ? ACTORS[known] : 'service' } };
}
