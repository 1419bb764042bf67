// The wiring of operations and invocations: the driver that runs them, sealed inputs, receipts and files.
import { INVOCATION_RETENTION_DAYS } from '../../contract/invocations.ts';
import type { CreateSession } from '../../contract/sessions.ts';
import { actionReceipt, endUserReceipt } from '../domain/actions/action-receipt.ts';
import type { AgentMemory } from '../domain/consumers/agent-memory.ts';
import type { Applications } from '../domain/identity/applications.ts';
import { Cursors } from '../domain/identity/cursors.ts';
import { runInBatches } from '../domain/in-batches.ts';
import { BrowserOperations } from '../domain/invocations/browser-operations.ts';
import { CallHandoffs } from '../domain/invocations/call-handoffs.ts';
import { Executions } from '../domain/invocations/executions.ts';
import { InvocationFiles } from '../domain/invocations/files.ts';
import { Invocations } from '../domain/invocations/invocations.ts';
import { ManagedOperations } from '../domain/invocations/managed.ts';
import { InvocationsOfApplication } from '../domain/invocations/of-application.ts';
import { PageTyping, type PageTypingParts } from '../domain/invocations/typing.ts';
import type { Limits } from '../domain/limits/limits.ts';
import type { Sessions } from '../domain/sessions/api.ts';
import { isExclusive } from '../domain/sessions/exclusive.ts';
import type { LiveSession, LiveSessions } from '../domain/sessions/live.ts';
import { invocationKey } from '../engines/artifacts/keys.ts';
import { CLEAN_STEPS } from '../engines/driver/clean-job.ts';
import { DriveFailed } from '../engines/driver/command.ts';
import { TO_MARKDOWN } from '../engines/driver/to-markdown.ts';
import type { InvocationRow, InvocationRows } from '../engines/store/rows/invocations.ts';
import type { SealBinding, Vault } from '../engines/vault/vault.ts';
import { normalizeCreate } from '../entry/http/normalize-create.ts';
import { addMs } from '../kit/clock.ts';
import { parseJson } from '../kit/foreign.ts';
import { isObject, type JsonObject } from '../kit/json.ts';
import type { Runtime } from '../kit/runtime.ts';
import { REST_INTERVAL_MS, type Task } from '../kit/task.ts';
import type { openConfiguredOperations } from './configured-operations.ts';
import type { Driving } from './driving.ts';
import type { Foundation } from './foundation.ts';
import type { openHandoffs } from './handoffs.ts';
import { offeredChoicesOf } from './offered.ts';
import type { openStoredCredentials } from './stored-credentials.ts';
import { validateIn } from './validate.ts';

const RECOVER_INTERVAL_MS = 5_000;
const FORGET_INTERVAL_MS = 600_000;
const FORGET_LIMITS = { batchSize: 100, batchesMax: 20 };
/**
 * Lower than `FORGET_LIMITS`, because the files of each output are removed one after the other, and a stopping server
 * waits for the current run.
 */
const FORGET_OUTPUT_LIMITS = { batchSize: 100, batchesMax: 3 };
const DAY_MS = 24 * 3_600_000;

/** Opened with the families, because signed links serve these files. */
export const openInvocationFiles = (
  { store, staging, outbox, links }: Foundation,
  limits: Pick<Limits, 'effective'>,
): InvocationFiles =>
  new InvocationFiles({
    ...{ rows: store.invocations, stored: store.storedBytes, limits, staging, outbox, links },
    keyOf: invocationKey,
  });

export interface InvocationsDeps {
  readonly driving: Driving;
  readonly sessions: Sessions;
  readonly files: InvocationFiles;
  readonly liveSessions: Pick<LiveSessions, 'get'>;
  readonly applications: Pick<Applications, 'require'>;
  readonly operations: Pick<ReturnType<typeof openConfiguredOperations>, 'catalogue' | 'http'>;
  readonly credentials: Pick<ReturnType<typeof openStoredCredentials>, 'calls' | 'typed'>;
  readonly typingPageOf: PageTypingParts['pageOf'];
  readonly handoffs: Pick<Awaited<ReturnType<typeof openHandoffs>>, 'requests' | 'handoffFollower'>;
  readonly memory: AgentMemory;
}

export function openInvocations(runtime: Runtime, foundation: Foundation, deps: InvocationsDeps) {
  const { driving, sessions, files, liveSessions, applications, operations, credentials, handoffs, memory } = deps;
  const { catalogue, http } = operations;
  const { clock, host } = runtime;
  const { config, store, secret, signingKeys, vault, workers } = foundation;
  const { isDriveFailed } = driving;
  const rows = store.invocations;
  const { rates } = config.credit;
  const offeredChoices = offeredChoicesOf(foundation);
  const managed = new ManagedOperations({
    ...{ ...driving, sessions, typing: openTyping(runtime, foundation, deps) },
    ...{ downloads: store.downloads, clock, handoffFollower: handoffs.handoffFollower },
    handoffs: new CallHandoffs({ ...handoffs, sessions, rows: store.handoffs }),
    isExclusive: async ({ applicationId }, id) => {
      const row = await store.sessions.get(applicationId, id);
      return row !== undefined && isExclusive(row);
    },
    requestOf: (body: CreateSession) => normalizeCreate(body, { mount: 'native', ...offeredChoices }),
    toMarkdown: (page, jobOwner) => workers.run(TO_MARKDOWN, page, { owner: jobOwner }),
  });
  const validate = validateIn(workers);
  const browser = new BrowserOperations({ managed, validate, typedCredentials: credentials.typed, clock });
  const inputs = sealedInputs(vault);
  const executions = new Executions({
    ...{ ...runtime, rows, keys: store.keys, catalogue, managed, http, browser, memory, files, isDriveFailed },
    sign: (typ, payload) => signingKeys.sign(typ, payload),
    openInput: inputs.open,
    ...{ issuer: config.publicUrl, handoffs: store.handoffs },
    receiptOf: (action, application) => actionReceipt({ rows: store.actions, secret }, application, action),
    endUserOf: row => endUserReceipt({ rows: store.consumers, secret }, row),
    rates,
    bytesOf: session => trafficBytesOf(liveSessions.get(session)),
  });
  const cursors = new Cursors(secret, clock);
  const service = new Invocations({
    ...{ rows, keys: store.keys, executions, catalogue, managed, http, browser, files, secret, rates, host, clock },
    ...{ cursors, memory },
    sealInput: inputs.seal,
    openInput: inputs.open,
    validate,
  });
  const ofApplication = new InvocationsOfApplication({ rows, applications, files, openInput: inputs.open, cursors });
  return {
    service,
    catalogue,
    ofApplication,
    tasks: [
      {
        name: 'recover_invocations',
        everyMs: RECOVER_INTERVAL_MS,
        quietMs: REST_INTERVAL_MS,
        run: () => executions.recover(),
      },
    ],
    removal: { folder: 'invocations' as const, task: forgetTask(() => forgetDue(rows, files, clock.now())) },
    close: () => executions.close(),
  };
}

const forgetTask = (run: Task['run']): Task => ({ name: 'forget_invocations', everyMs: FORGET_INTERVAL_MS, run });

/** Deletes outputs and inputs that are due, and invocations that ended long ago. */
async function forgetDue(rows: InvocationRows, files: InvocationFiles, now: Date): Promise<Record<string, number>> {
  const endedBefore = addMs(now, -INVOCATION_RETENTION_DAYS * DAY_MS);
  return {
    outputs: await runInBatches(FORGET_OUTPUT_LIMITS, batchSize => files.forgetOld(now, batchSize)),
    inputs: await runInBatches(FORGET_LIMITS, batchSize => rows.forgetInputs(now, batchSize)),
    forgotten: await runInBatches(FORGET_LIMITS, batchSize => rows.forget(endedBefore, batchSize)),
  };
}

const openTyping = (
  { log }: Runtime,
  { workers }: Pick<Foundation, 'workers'>,
  { credentials, liveSessions, typingPageOf }: InvocationsDeps,
): PageTyping =>
  new PageTyping({
    ...{ credentials: credentials.typed, uses: credentials.calls, pageOf: typingPageOf, log },
    secretsOf: session => liveSessions.get(session)?.secrets,
    failure: (why, message, details = {}) => new DriveFailed(why, message, details),
    clean: (outcome, secrets, jobOwner) =>
      workers.run(CLEAN_STEPS, { stepsOutcome: outcome, secrets }, { owner: jobOwner }),
  });

function trafficBytesOf(liveSession: LiveSession | undefined): number | undefined {
  if (!liveSession) return undefined;
  const { bytesUp, bytesDown } = liveSession.egress.counters();
  return bytesUp + bytesDown;
}

function sealedInputs(vault: Vault) {
  const placeOf = ({ id, applicationId }: Pick<InvocationRow, 'id' | 'applicationId'>): SealBinding => ({
    ...{ owner: applicationId, kind: 'invocation_input', id, version: 1 },
  });
  return {
    seal: (row: Pick<InvocationRow, 'id' | 'applicationId'>, input: JsonObject): Promise<Buffer> =>
      vault.seal(placeOf(row), Buffer.from(JSON.stringify(input))),
    open: async (row: InvocationRow): Promise<JsonObject> => {
      if (!row.sealedInput) throw new Error(`the invocation ${row.id} has no input`);
      const value = parseJson((await vault.open(placeOf(row), row.sealedInput)).reveal());
      if (!isObject(value)) throw new Error(`the input of the invocation ${row.id} is not an object`);
      return value;
    },
  };
}
