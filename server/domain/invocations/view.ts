// Invocations as the API shows them, to agents and to members.
import type { Invocation, InvocationListQuery, InvocationStatus } from '../../../contract/invocations.ts';
import type { InvocationFilter, InvocationRow, InvocationState } from '../../engines/store/rows/invocations.ts';
import type { ActionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';

/** The internal states that each status of the API stands for. */
const STATES_BY_STATUS: Readonly<Record<InvocationStatus, readonly InvocationState[]>> = {
  running: ['accepted', 'dispatched'],
  succeeded: ['succeeded'],
  failed: ['failed'],
  ambiguous: ['ambiguous'],
  cancelled: ['cancelled'],
};

/** Returns the filters that the lists for agents and for members have in common. */
export const filterOf = ({
  operationId,
  status,
  jobId,
  after,
}: InvocationListQuery): Omit<InvocationFilter, 'limit'> => ({
  ...(operationId === undefined ? {} : { operationId }),
  ...(status === undefined ? {} : { states: STATES_BY_STATUS[status] }),
  ...(jobId === undefined ? {} : { jobId: jobId.toLowerCase() as ActionId }), // Validated by the contract.
  ...(after === undefined ? {} : { createdAfter: new Date(after) }),
});

/** Converts an invocation to its API representation. `output` includes links to its files. */
export function invocationView(row: InvocationRow, output?: JsonObject): Invocation {
  const { id, operationId, operationRevision, effect, inputDigest, outputDigest, attempts, sessionId, receipt } = row;
  const { metadata, error, startedAt, endedAt, keyId, jobId } = row;
  return {
    ...{ id, operationId, operationRevision, effect, status: statusOf(row.state), inputDigest, attempts },
    ...{ caller: { keyId }, cost: costIn(row) },
    createdAt: row.createdAt.toISOString(),
    ...(outputDigest === undefined ? {} : { outputDigest }),
    ...(output === undefined ? {} : { output }),
    ...(row.outputInvalid ? { outputInvalid: true } : {}),
    ...(error === undefined ? {} : { error: errorIn(error) }),
    ...(startedAt === undefined ? {} : { startedAt: startedAt.toISOString() }),
    ...(endedAt === undefined ? {} : { endedAt: endedAt.toISOString() }),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(jobId === undefined ? {} : { jobId }),
    ...(metadata === undefined ? {} : { metadata: metadata as Record<string, string> }), // Validated by the contract.
    ...retentionIn(row),
    ...(receipt === undefined ? {} : { receipt }),
  };
}

const statusOf = (state: InvocationState): InvocationStatus =>
  state === 'accepted' || state === 'dispatched' ? 'running' : state;

const costIn = ({ reserved, captured, meters }: InvocationRow): Invocation['cost'] => ({
  ...{ reserved, captured, unit: 'microcredit' },
  meters: { browserSeconds: Number(meters.browserSeconds ?? 0), egressBytes: Number(meters.egressBytes ?? 0) },
});

function retentionIn({ outputUntil, inputUntil }: InvocationRow): Pick<Invocation, 'retention'> {
  if (!outputUntil && !inputUntil) return {};
  return {
    retention: {
      ...(outputUntil ? { outputUntil: outputUntil.toISOString() } : {}),
      ...(inputUntil ? { inputUntil: inputUntil.toISOString() } : {}),
    },
  };
}

/** The error was written by executions.ts, so it has the right type. */
const errorIn = (error: JsonObject) => error as unknown as NonNullable<Invocation['error']>;
