// The actor and the description of each end reason, for the event list.
import { END_REASONS, type EndReason } from '../../../contract/sessions.ts';
import type { Actor } from '../../engines/store/rows/events.ts';
import type { SessionEnd } from '../../engines/store/rows/sessions.ts';

const ACTOR_KIND_BY_REASON: Readonly<Record<EndReason, Actor['kind']>> = {
  released: 'agentKey',
  client_disconnected: 'client',
  browser_closed: 'client',
  timed_out: 'clock',
  connect_timeout: 'clock',
  crashed: 'browser',
  out_of_memory: 'browser',
  start_failed: 'service',
  egress_limit: 'service',
  disk_limit: 'service',
  operator: 'operator',
  drained: 'operator',
  service_restart: 'service',
  host_lost: 'service',
  credit_exhausted: 'service',
};

/** An end that this server decides. The reason in a row may be one of another version. */
export interface DecidedEnd extends SessionEnd {
  readonly reason: EndReason;
}

/**
 * The default detail of the end of a session, by reason. Used if the code that ends the session gives no detail.
 * Undefined: the reason says all that is known.
 */
const DEFAULT_DETAILS: Readonly<Record<EndReason, string | undefined>> = {
  released: 'a caller released it',
  client_disconnected: 'the last client disconnected, and none returned in time',
  browser_closed: 'a client closed the browser',
  timed_out: 'its time limit was reached',
  connect_timeout: 'no client connected in time',
  host_lost: 'the host that ran its browser stopped responding',
  drained: 'the operator stopped the service and ended its sessions',
  crashed: undefined,
  out_of_memory: undefined,
  start_failed: undefined,
  egress_limit: undefined,
  disk_limit: undefined,
  operator: undefined,
  service_restart: undefined,
  credit_exhausted: undefined,
};

/** Adds the actor and the detail if the end does not contain them. */
export function withActorAndDetail(end: SessionEnd): SessionEnd & { readonly by: Actor } {
  const knownReason = END_REASONS.find(word => word === end.reason);
  const detail = end.detail ?? (knownReason && DEFAULT_DETAILS[knownReason]);
  return {
    ...end,
    ...(detail === undefined ? {} : { detail }),
    by: end.by ?? { kind: knownReason ? ACTOR_KIND_BY_REASON[knownReason] : 'service' },
  };
}
