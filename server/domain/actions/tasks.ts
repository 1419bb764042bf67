// The clock tasks of Actions. They record expiries, execute approved Actions, and delete old Actions.
import { ACTION_RETENTION_DAYS } from '../../../contract/actions.ts';
import type { ActionRow } from '../../engines/store/rows/actions.ts';
import type { KeyRow } from '../../engines/store/rows/credentials.ts';
import type { Store } from '../../engines/store/store.ts';
import { addMs } from '../../kit/clock.ts';
import { isFault, reason } from '../../kit/fault.ts';
import type { ApplicationId, KeyId } from '../../kit/ids.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { REST_INTERVAL_MS, type Task } from '../../kit/task.ts';
import { BY_SERVICE } from '../audit/by-caller.ts';
import { statusOf } from '../identity/credential-rules.ts';
import { runInBatches } from '../in-batches.ts';
import { callerOf } from '../invocations/executions.ts';
import type { ActionAudit } from './action-audit.ts';
import type { AgentActions } from './agent-actions.ts';
import { EXECUTE_TASK } from './decisions.ts';

const EXPIRE_INTERVAL_MS = 5_000;
const EXECUTE_INTERVAL_MS = 5_000;
const FORGET_INTERVAL_MS = 600_000;
const BATCH_MAX = 100;
const FORGET_LIMITS = { batchSize: BATCH_MAX, batchesMax: 20 };
const EXECUTE_BATCH_MAX = 20;
/**
 * Delay before a refused or failed execution is retried. The cause may be a limit, or a problem that only
 * a person can fix.
 */
const RETRY_DELAY_MS = 60_000;
const DAY_MS = 24 * 3_600_000;

export interface TasksParts extends Pick<Runtime, 'clock' | 'log' | 'host'> {
  readonly store: Pick<Store, 'actions' | 'atomically'>;
  readonly keys: { get(application: ApplicationId, id: KeyId): Promise<KeyRow | undefined> };
  readonly agent: Pick<AgentActions, 'execute'>;
  readonly audit: ActionAudit;
}

export const actionTasks = (parts: TasksParts): readonly Task[] => [
  { name: 'expire_actions', everyMs: EXPIRE_INTERVAL_MS, quietMs: REST_INTERVAL_MS, run: () => expire(parts) },
  { name: EXECUTE_TASK, everyMs: EXECUTE_INTERVAL_MS, run: () => execute(parts) },
  { name: 'forget_actions', everyMs: FORGET_INTERVAL_MS, run: () => forget(parts) },
];

async function expire({ store, clock, audit }: TasksParts): Promise<{ expired: number }> {
  const expiredCount = await store.atomically(async trx => {
    const rows = await trx.actions.expire(clock.now(), BATCH_MAX);
    // The entries are written in the order of the application ids, because each entry locks the chain of its
    // application until the commit.
    for (const row of rows.toSorted((a, b) => (a.applicationId < b.applicationId ? -1 : 1)))
      await audit.record('action.expired', row, BY_SERVICE, trx);
    return rows.length;
  });
  return { expired: expiredCount };
}

async function execute(parts: TasksParts): Promise<{ executed: number; heldBack: number }> {
  const dueRows = await parts.store.actions.due(parts.clock.now(), parts.host, EXECUTE_BATCH_MAX);
  let executedCount = 0;
  for (const row of dueRows) executedCount += (await executeAction(parts, row)) ? 1 : 0;
  return { executed: executedCount, heldBack: dueRows.length - executedCount };
}

/**
 * Executes the Action as the key that prepared it. Returns false if the execution was refused, in which case nothing
 * was started, or if it failed, for example because the content of the Action cannot be opened.
 */
async function executeAction({ store, keys, agent, clock, log }: TasksParts, row: ActionRow): Promise<boolean> {
  const { id, applicationId, keyId, digest } = row;
  const holdBack = async (code: string): Promise<false> => {
    log.info('action.held_back', { jobId: id, code });
    await store.actions.postpone(id, addMs(clock.now(), RETRY_DELAY_MS), code);
    return false;
  };
  const key = await keys.get(applicationId, keyId);
  if (!key || statusOf(key, clock.now()) !== 'active') return holdBack('invalid_credentials');
  const caller = callerOf(key);
  if (!caller.scopes.has('actions:execute')) return holdBack('permission_denied');
  try {
    await agent.execute(caller, applicationId, id, { digest }, { waitSeconds: 0, signal: AbortSignal.abort() });
    return true;
  } catch (error) {
    if (isFault(error)) return holdBack(error.code);
    log.error('action.not_executed', { jobId: id, reason: reason(error) });
    // Without the delay, this Action would be the first one in the next run as well, and the Actions after it would
    // never be executed. An Action whose execution has started is no longer in the state `approved`, so it is not
    // postponed.
    return holdBack('internal');
  }
}

async function forget({ store, clock }: TasksParts): Promise<{ contents: number; forgotten: number }> {
  const now = clock.now();
  const endedBefore = addMs(now, -ACTION_RETENTION_DAYS * DAY_MS);
  return {
    contents: await runInBatches(FORGET_LIMITS, batchSize => store.actions.forgetContent(now, batchSize)),
    forgotten: await runInBatches(FORGET_LIMITS, batchSize => store.actions.forget(endedBefore, batchSize)),
  };
}
