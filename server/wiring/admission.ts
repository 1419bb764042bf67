// The wiring of admission: the limits of applications and credentials, the queue of creates, and the bounds on bytes
// that are buffered for slow readers.
import { WAITING_CREATES_MAX } from '../../contract/limits.ts';
import { TIMEOUT_MAX_SECONDS } from '../../contract/sessions.ts';
import { Line } from '../domain/fleet/line.ts';
import type { Applications } from '../domain/identity/applications.ts';
import { FleetRates } from '../domain/limits/fleet-rates.ts';
import { Limits } from '../domain/limits/limits.ts';
import { AdmissionQueue } from '../domain/limits/queue.ts';
import type { RateLimiter } from '../domain/limits/request-rates.ts';
import { WaitingBytes } from '../domain/limits/waiting-bytes.ts';
import type { PlacedSession } from '../domain/sessions/create.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

export interface Admission {
  readonly limits: Limits;
  readonly queue: AdmissionQueue<PlacedSession>;
  readonly line: Line;
  readonly waitingBytes: WaitingBytes;
  readonly rates: RateLimiter;
}

export async function openAdmission(
  { host, clock, log }: Runtime,
  { config, store, audit, fleet, scope }: Foundation,
  applications: Applications,
): Promise<Admission> {
  const queue = new AdmissionQueue<PlacedSession>(clock);
  const line = scope.own(new Line({ rows: store.line, fleet, host, clock, log }));
  const serve = (): void => void line.serve();
  if (fleet.hasLease) scope.own(await store.listen('line_moved', serve, serve));
  const limits = new Limits({
    store,
    applications,
    audit,
    ceiling: {
      get maxConcurrent() {
        return config.slots + fleet.slotsElsewhere;
      },
      ...{ maxTimeout: TIMEOUT_MAX_SECONDS, maxWaiting: WAITING_CREATES_MAX },
    },
    waitingOf: async application =>
      queue.waitingOf(application) + (fleet.isAlone ? 0 : await line.countWaiting(application)),
    onChanged: () => {
      queue.noteFreeSlot();
      line.announceRoom();
    },
    clock,
    log,
  });
  const rates = new FleetRates({
    ...{ perMinute: config.requestsPerMinute, rows: store.requestRates, clock, log },
    isAlone: () => fleet.isAlone,
  });
  return { limits, queue, line, waitingBytes: new WaitingBytes(), rates };
}
