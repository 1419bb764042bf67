// The wiring of events: the service that lists and streams them, and the task that deletes old ones.
import { EventService } from '../domain/events/events.ts';
import { forgetEnded } from '../domain/forget-ended.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

const FORGET_INTERVAL_MS = 3_600_000;
const RETENTION_MS = 31 * 24 * FORGET_INTERVAL_MS;
/** `batchSize`: the maximum number of sessions per statement. `batchesMax`: the maximum number of statements per run. */
const FORGET_LIMITS = { keptMs: RETENTION_MS, batchSize: 200, batchesMax: 50 };

export async function openEvents({ clock }: Runtime, { store: { events, sessions, listen } }: Foundation) {
  const service = await EventService.open({ events, sessions, clock }, listen);
  const forget = () => forgetEnded(clock, { ...FORGET_LIMITS, forget: events.forget });
  return {
    service,
    tasks: [{ name: 'forget_events', everyMs: FORGET_INTERVAL_MS, run: forget }],
    close: () => service.close(),
  };
}
