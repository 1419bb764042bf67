// The wiring of admission: the limits of applications and credentials, the queue of creates, and the bytes that wait for readers.
import { WAITING_MAX } from '../../contract/limits.ts';
import { TIMEOUT_MAX_SECONDS } from '../../contract/sessions.ts';
import type { Applications } from '../domain/identity/applications.ts';
import { Limits } from '../domain/limits/limits.ts';
import { AdmissionQueue } from '../domain/limits/queue.ts';
import { RequestRates } from '../domain/limits/request-rates.ts';
import { WaitingBytes } from '../domain/limits/waiting-bytes.ts';
import type { PlacedSession } from '../domain/sessions/create.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

export interface Admission {
  readonly limits: Limits;
  readonly queue: AdmissionQueue<PlacedSession>;
  readonly waiting: WaitingBytes;
  readonly rates: RequestRates;
}

export function openAdmission(
  { clock, log }: Runtime,
  { config, store, audit, fleet }: Foundation,
  applications: Applications,
): Admission {
  const queue = new AdmissionQueue<PlacedSession>(clock);
  const limits = new Limits({
    store,
    applications,
    audit,
    ceiling: {
      get maxConcurrent() {
        return config.slots + fleet.slotsElsewhere;
      },
      ...{ maxTimeout: TIMEOUT_MAX_SECONDS, maxWaiting: WAITING_MAX },
    },
    waitingOf: application => queue.waitingOf(application),
    changed: () => queue.freed(),
    clock,
    log,
  });
  return { limits, queue, waiting: new WaitingBytes(), rates: new RequestRates(config.requestsPerMinute, clock) };
}
