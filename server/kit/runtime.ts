// The common dependencies of everything that runs: the clock, the server's log, spans, and the id of the host.
import type { Clock } from './clock.ts';
import type { HostId } from './ids.ts';
import type { Log } from './log.ts';
import type { Tracer } from './trace.ts';

export interface Runtime {
  readonly clock: Clock;
  readonly log: Log;
  readonly host: HostId;
  readonly trace: Tracer;
}
