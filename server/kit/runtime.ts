// What everything that runs is given: the time, the log of the server, spans, and which host it is.
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
