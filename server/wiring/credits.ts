// The wiring of credit: queries, purchases, and the tasks that meter sessions and expire holds and checkouts.
import { Credits } from '../domain/credits/credits.ts';
import { expireHolds } from '../domain/credits/expiring.ts';
import { type MeteringParts, meterSessions } from '../domain/credits/metering.ts';
import type { Applications } from '../domain/identity/applications.ts';
import { Cursors } from '../domain/identity/cursors.ts';
import { TopUps } from '../domain/topups/topups.ts';
import type { Runtime } from '../kit/runtime.ts';
import { REST_INTERVAL_MS } from '../kit/task.ts';
import type { Foundation } from './foundation.ts';

const METER_INTERVAL_MS = 5_000;
const EXPIRE_INTERVAL_MS = 600_000;
const BATCH_MAX = 100;

export interface CreditsDeps {
  readonly applications: Pick<Applications, 'require' | 'canAccess'>;
  readonly endSession: MeteringParts['end'];
  readonly isEndUnwritten: MeteringParts['isEndUnwritten'];
}

export function openCredits(
  { clock, log, host }: Runtime,
  { config, store, secret, audit }: Foundation,
  { applications, endSession, isEndUnwritten }: CreditsDeps,
) {
  const meteringParts = {
    rows: store.credits,
    clock,
    log,
    host,
    lowBalanceThreshold: config.credit.lowBalanceThreshold,
    end: endSession,
    isEndUnwritten,
  };
  const { rates } = config.credit;
  const cursors = new Cursors(secret, clock);
  const { packs, paymentText } = config.credit;
  const expireOverdue = async () => ({
    holds: await expireHolds({ store, audit, clock }),
    checkouts: await store.checkouts.expire(clock.now(), BATCH_MAX),
  });
  return {
    topUps: new TopUps({ store, applications, audit, cursors, secret, packs, paymentText, clock }),
    service: new Credits({ rows: store.credits, hours: store.usageHours, applications, cursors, rates, clock }),
    tasks: [
      {
        name: 'settle_meters',
        everyMs: METER_INTERVAL_MS,
        unusedMs: REST_INTERVAL_MS,
        run: () => meterSessions(meteringParts),
      },
      { name: 'expire_credit', everyMs: EXPIRE_INTERVAL_MS, run: expireOverdue },
    ],
  };
}
