// Operations that agents call, and the invocations that result: status, output, cost and receipt.
import { type Static, Type } from 'typebox';
import { AnyObject, Page, PageQuery, Time, Uuid } from './common.ts';

export const INPUT_BYTES_MAX = 262_144;
export const METADATA_BYTES_MAX = 1_024;
export const INVOKE_WAIT_SECONDS_DEFAULT = 30;
export const INVOKE_WAIT_SECONDS_MAX = 55;
/** Number of days for which the output and artifacts of an invocation are kept. */
export const OUTPUT_RETENTION_DAYS = 31;
/** Number of days for which an invocation and its receipt are kept after the invocation has ended. */
export const INVOCATION_RETENTION_DAYS = 400;

export const INVOCATION_STATUSES = ['running', 'succeeded', 'failed', 'ambiguous', 'cancelled'] as const;
export type InvocationStatus = (typeof INVOCATION_STATUSES)[number];

export const OPERATION_ID_OPTIONS = { pattern: '^[a-z][a-z0-9]*([._-][a-z0-9]+)*$', maxLength: 64 } as const;

export const OperationIdText = Type.String({
  ...OPERATION_ID_OPTIONS,
  description: 'Id of the operation, for example `browser.screenshot`.',
});

const AppId = Uuid('Id of the application of the agent key.');
export const AgentApplicationParams = Type.Object({ appId: AppId });
export const AgentOperationParams = Type.Object({ appId: AppId, operationId: OperationIdText });
export const InvocationParams = Type.Object({ appId: AppId, id: Uuid('Id of the invocation.') });

export const OPERATION_EFFECTS = ['read', 'write', 'irreversible'] as const;
export type OperationEffect = (typeof OPERATION_EFFECTS)[number];

const Effect = Type.Enum([...OPERATION_EFFECTS], {
  description:
    '`read`: the operation changes nothing, and a call is repeated after a failure of the service. `write` and `irreversible`: a call is run at most once.',
});

export const AgentOperation = Type.Object(
  {
    id: OperationIdText,
    title: Type.String(),
    description: Type.String(),
    revision: Type.Integer({ description: 'The revision that a call executes.' }),
    digest: Type.String({
      description: '`sha256:` followed by the digest of the definition of the operation, as in receipts.',
    }),
    effect: Effect,
    inputSchema: AnyObject('JSON Schema (2020-12) of the input.'),
    outputSchema: AnyObject('JSON Schema (2020-12) of the output.'),
    approval: Type.Enum(['none', 'end_user', 'member', 'owner'], {
      description:
        'Who must approve a call. With any value other than `none`, a call is refused with `approval_required`: prepare an Action instead.',
    }),
    price: Type.Object(
      {
        microCredits: Type.Integer({ description: 'Price of one call.' }),
        estimate: Type.Optional(
          Type.Object(
            { browserSeconds: Type.Integer(), egressBytes: Type.Integer() },
            {
              description:
                'The usage for which credit is held if a call has the default time limit. The call is charged for its actual usage. Absent if the call has no session of its own.',
            },
          ),
        ),
      },
      { description: 'Price of a call.' },
    ),
    requires: Type.Object(
      {
        connection: Type.Enum(['ready', 'missing'], {
          description:
            '`missing`: the application has not stored the credential for the other service, or the credential may not be sent there; a call is refused with `credential_missing`.',
        }),
      },
      { description: 'What a call needs in addition to its input.' },
    ),
    timeoutMs: Type.Integer({ description: 'Default time limit in milliseconds.' }),
    grant: Type.Object(
      {
        input: Type.Optional(AnyObject('JSON Schema that the input must satisfy in addition to `inputSchema`.')),
        credentials: Type.Optional(
          Type.Array(Type.String(), { description: 'Credentials that a call of `browser.steps` may type into pages.' }),
        ),
        remainingCallsToday: Type.Optional(
          Type.Integer({
            description: 'Number of calls that the grant still allows until midnight UTC. Absent if there is no limit.',
          }),
        ),
        remainingCostToday: Type.Optional(
          Type.Integer({
            description:
              'Cost of calls that the grant still allows until midnight UTC, in micro-credits. A call for which more would have to be held is refused. Absent if there is no limit.',
          }),
        ),
      },
      { description: 'What the agent key may do with the operation.' },
    ),
  },
  { description: 'An operation that the agent key may call.' },
);
export type AgentOperation = Static<typeof AgentOperation>;

export const AgentOperationList = Page(AgentOperation, 'Ordered by id.');
export type AgentOperationList = Static<typeof AgentOperationList>;

export const InvokeOperation = Type.Object(
  {
    input: AnyObject(`The input. At most ${INPUT_BYTES_MAX / 1024} KiB.`, { default: {} }),
    revision: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2_147_483_647,
        description: 'Refuse the call if the operation is at a different revision.',
      }),
    ),
    maxCost: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'Maximum cost of the call, in micro-credits. When the cost reaches this amount, the call is stopped and fails with `cost_limit`. Defaults to the amount that is held for a call with this time limit.',
      }),
    ),
    metadata: Type.Optional(
      Type.Record(Type.String(), Type.String({ maxLength: METADATA_BYTES_MAX }), {
        description: `Kept with the invocation. At most ${METADATA_BYTES_MAX} bytes of JSON.`,
      }),
    ),
  },
  { additionalProperties: false },
);
export type InvokeOperation = Static<typeof InvokeOperation>;

export const InvokeHeaders = Type.Object({
  prefer: Type.Optional(
    Type.String({
      description: `\`wait=SECONDS\` (0–${INVOKE_WAIT_SECONDS_MAX}, default ${INVOKE_WAIT_SECONDS_DEFAULT}): how long to wait for the end. \`respond-async\`: do not wait.`,
    }),
  ),
  'idempotency-key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: '^[\\x20-\\x7e]+$',
      description:
        'Calls with the same key refer to the same invocation, for as long as the invocation is kept. A different request with the same key is refused with `idempotency_conflict`. Required if the effect is not `read`.',
    }),
  ),
});

export const InvocationError = Type.Object(
  {
    code: Type.String({ description: 'Stable code for programs, such as `page_failed`, `timeout` or `cost_limit`.' }),
    message: Type.String(),
    retryable: Type.Boolean({ description: 'Whether another call may succeed.' }),
    phase: Type.Enum(['before', 'during', 'after'], {
      description:
        'When the call failed. `before`: its effect had not started. `during`: its effect may have happened. `after`: its effect has happened.',
    }),
    details: Type.Optional(AnyObject('Machine-readable details.')),
  },
  { description: 'Why the invocation failed.' },
);
export type InvocationError = Static<typeof InvocationError>;

export const Invocation = Type.Object(
  {
    id: Uuid('Id of the invocation.'),
    operationId: OperationIdText,
    operationRevision: Type.Integer(),
    effect: Effect,
    status: Type.Enum([...INVOCATION_STATUSES], {
      description:
        '`ambiguous`: it is unknown whether the effect happened, because the service stopped during the call or the upstream service gave no conclusive response. `cancelled`: the invocation was cancelled before it began to run.',
    }),
    inputDigest: Type.String({ description: '`sha256:` followed by the digest of the canonical input (RFC 8785).' }),
    outputDigest: Type.Optional(Type.String()),
    input: Type.Optional(
      AnyObject('The input, while it is kept. Returned only when one invocation is read, after it has ended.'),
    ),
    output: Type.Optional(
      AnyObject(
        `The output, while it is kept: for ${OUTPUT_RETENTION_DAYS} days, or for the period in the \`retention\` of the operation.`,
      ),
    ),
    outputInvalid: Type.Optional(
      Type.Literal(true, {
        description: 'Present if the effect has happened but the output does not match the `outputSchema`.',
      }),
    ),
    error: Type.Optional(InvocationError),
    createdAt: Time('When the call was accepted.'),
    startedAt: Type.Optional(Time('When the call started. The effect cannot have happened before this time.')),
    endedAt: Type.Optional(Time('When the invocation ended.')),
    attempts: Type.Integer({ description: 'Number of times that the operation was run for this invocation.' }),
    sessionId: Type.Optional(Uuid('The session that the call ran in.')),
    jobId: Type.Optional(Uuid('The Action that the call executes.')),
    caller: Type.Object({ keyId: Type.String() }, { description: 'The agent key that made the call.' }),
    cost: Type.Object(
      {
        reserved: Type.Integer({ description: 'Micro-credits that were held at the start.' }),
        captured: Type.Integer({
          description: 'Micro-credits that the call cost. 0 while it is running, and while its outcome is unknown.',
        }),
        unit: Type.Enum(['microcredit']),
        meters: Type.Object({
          browserSeconds: Type.Number({
            description: 'Duration of the session that was created for the call, in seconds, rounded up.',
          }),
          egressBytes: Type.Integer({
            description: 'Number of bytes that this session sent to and received from the network.',
          }),
        }),
      },
      { description: 'The credit held and charged for the call, and the usage it was charged for.' },
    ),
    metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
    retention: Type.Optional(
      Type.Object({
        outputUntil: Type.Optional(Time('When the output is removed.')),
        inputUntil: Type.Optional(Time('When the input is removed.')),
      }),
    ),
    receipt: Type.Optional(
      Type.String({
        description: 'Signed receipt (JWS, `typ` `berth-receipt+jwt`). Present once the invocation has ended.',
      }),
    ),
  },
  { description: 'One call of an operation.' },
);
export type Invocation = Static<typeof Invocation>;

export const InvocationQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: INVOKE_WAIT_SECONDS_MAX,
      description: 'Seconds to wait for the invocation to end.',
    }),
  ),
  since: Type.Optional(
    Type.Enum([...INVOCATION_STATUSES], {
      description:
        'The status that you last read. With any status other than the current one, the response is immediate.',
      default: 'running',
    }),
  ),
});
export type InvocationQuery = Static<typeof InvocationQuery>;

const Instant = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }));

export const InvocationListQuery = Type.Object({
  operationId: Type.Optional(OperationIdText),
  status: Type.Optional(Type.Enum([...INVOCATION_STATUSES])),
  jobId: Type.Optional(Type.String({ format: 'uuid', description: 'Only the call that executes this Action.' })),
  after: Instant('Only calls that were accepted at this time or later. ISO 8601.'),
  ...PageQuery.properties,
});
export type InvocationListQuery = Static<typeof InvocationListQuery>;

/** Query parameters of the list for members, which contains the calls of every agent key. */
export const ApplicationInvocationListQuery = Type.Object({
  ...InvocationListQuery.properties,
  keyId: Type.Optional(Type.String({ format: 'uuid', description: 'Only calls of this agent key.' })),
  before: Instant('Only calls that were accepted before this time. ISO 8601.'),
});
export type ApplicationInvocationListQuery = Static<typeof ApplicationInvocationListQuery>;

export const ApplicationInvocationParams = Type.Object({
  appId: Uuid('Id of the application.'),
  id: Uuid('Id of the invocation.'),
});

export const InvocationPage = Page(Invocation);
export type InvocationPage = Static<typeof InvocationPage>;

export const ReceiptParams = Type.Object({ jti: Uuid('The `jti` of the receipt.') });
export const ReceiptStatus = Type.Object({
  status: Type.Enum(['current', 'unknown'], {
    description:
      '`current`: this service issued the receipt, and no later receipt amends it. `unknown`: this service did not issue the receipt, or no longer keeps it.',
  }),
});
