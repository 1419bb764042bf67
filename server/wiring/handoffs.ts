// The wiring of hand-offs: who may request one, and what happens to hand-offs whose session has ended.
import { HANDOFF_RETENTION_DAYS, HandoffTerms } from '../../contract/handoffs.ts';
import { CdpHandoffs } from '../domain/handoffs/cdp-handoffs.ts';
import { withdrawFromConsumers } from '../domain/handoffs/consumers-gone.ts';
import { HandoffFollower } from '../domain/handoffs/handoff-follower.ts';
import { Handoffs } from '../domain/handoffs/handoffs.ts';
import { HandoffRequests } from '../domain/handoffs/requests.ts';
import type { Applications } from '../domain/identity/applications.ts';
import { Cursors } from '../domain/identity/cursors.ts';
import { runInBatches } from '../domain/in-batches.ts';
import type { Limits } from '../domain/limits/limits.ts';
import type { LiveView } from '../domain/live/live-view.ts';
import type { LiveSessions } from '../domain/sessions/live.ts';
import { validatorOf } from '../entry/http/validate.ts';
import { addMs } from '../kit/clock.ts';
import type { Runtime } from '../kit/runtime.ts';
import { REST_INTERVAL_MS } from '../kit/task.ts';
import type { Foundation } from './foundation.ts';

const EXPIRE_INTERVAL_MS = 5_000;
const WITHDRAW_TASK = 'withdraw_handoffs';
/**
 * The task also runs at once when the sign-in session of a consumer ends. This interval covers missed notifications.
 */
const WITHDRAW_INTERVAL_MS = 30_000;
const FORGET_INTERVAL_MS = 3_600_000;
const FORGET_LIMITS = { batchSize: 10_000, batchesMax: 20 };
const DAY_MS = 24 * 3_600_000;

export interface HandoffDeps {
  readonly applications: Pick<Applications, 'require'>;
  readonly admission: { readonly limits: Pick<Limits, 'effective'> };
  readonly live: LiveView;
  readonly liveSessions: LiveSessions;
}

export async function openHandoffs(
  { clock }: Runtime,
  { store, config, secret, trigger }: Foundation,
  deps: HandoffDeps,
) {
  const { applications, live, liveSessions } = deps;
  const { limits } = deps.admission;
  const leaseOf: LiveView['leaseOf'] = session => live.leaseOf(session);
  const { publicUrl } = config;
  const requests = new HandoffRequests({
    ...{ store, leaseOf, publicUrl, clock },
    extend: async ({ id, applicationId, createdAt, expiresAt }, until) => {
      const { maxTimeout } = await limits.effective(applicationId);
      const latestExpiry = addMs(createdAt, 1000 * maxTimeout);
      const newExpiry = until < latestExpiry ? until : latestExpiry;
      if (newExpiry <= expiresAt) return expiresAt;
      const changedRow = await store.sessions.change(applicationId, id, { expiresAt: newExpiry }, clock.now());
      return changedRow?.expiresAt ?? expiresAt;
    },
  });
  const handoffFollower = new HandoffFollower({ rows: store.handoffs, leaseOf, clock });
  const service = new Handoffs({
    ...{ store, requests, handoffFollower, applications, leaseOf, liveSessions, clock },
    leaseUrl: (row, until) => live.leasedUrl(row, until),
    cursors: new Cursors(secret, clock),
  });
  const endOrphanedHandoffs = async () => ({ ended: await store.handoffs.endForEndedSessions(clock.now()) });
  let isTriggered = false;
  const triggerWithdrawTask = (): void => {
    if (isTriggered) return;
    isTriggered = true;
    trigger(WITHDRAW_TASK);
  };
  const withdraw = async () => {
    isTriggered = false;
    return { withdrawn: await withdrawFromConsumers({ store, leaseOf }) };
  };
  const subscription = await store.listen('credential_revoked', triggerWithdrawTask, triggerWithdrawTask);
  const forget = async () => {
    const endedBefore = addMs(clock.now(), -HANDOFF_RETENTION_DAYS * DAY_MS);
    return { removed: await runInBatches(FORGET_LIMITS, batchSize => store.handoffs.forget(endedBefore, batchSize)) };
  };
  return {
    service,
    requests,
    handoffFollower,
    cdp: new CdpHandoffs({ requests, issuesOf: validatorOf(HandoffTerms) }),
    tasks: [
      { name: 'expire_handoffs', everyMs: EXPIRE_INTERVAL_MS, quietMs: REST_INTERVAL_MS, run: endOrphanedHandoffs },
      { name: WITHDRAW_TASK, everyMs: WITHDRAW_INTERVAL_MS, run: withdraw },
      { name: 'forget_handoffs', everyMs: FORGET_INTERVAL_MS, run: forget },
    ],
    close: () => subscription.close(),
  };
}
