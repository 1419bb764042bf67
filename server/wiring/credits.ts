// The wiring of credit: what is read of it, and the task that meters sessions.
import { Credits } from '../domain/credits/credits.ts';
import { type MeteringParts, meterSessions } from '../domain/credits/metering.ts';
import type { Applications } from '../domain/identity/applications.ts';
import { Cursors } from '../domain/identity/cursors.ts';
import type { Runtime } from '../kit/runtime.ts';
import type { Foundation } from './foundation.ts';

const LOOK_MS = 5_000;

export interface CreditsDeps {
  readonly applications: Pick<Applications, 'require'>;
  readonly endSession: MeteringParts['end'];
}

export function openCredits(
  { clock, log, host }: Runtime,
  { config, store, secret }: Foundation,
  { applications, endSession }: CreditsDeps,
) {
  const metering = { rows: store.credits, clock, log, host, low: config.credit.low, end: endSession };
  const { rates } = config.credit;
  const cursors = new Cursors(secret, clock);
  return {
    service: new Credits({ rows: store.credits, hours: store.usageHours, applications, cursors, rates, clock }),
    tasks: [{ name: 'settle_meters', everyMs: LOOK_MS, run: () => meterSessions(metering) }],
  };
}
