// Actions: calls of operations that are fixed first, approved by a person, and then executed at most once.
import { type Static, Type } from 'typebox';
import { AnyObject, Page, PageQuery, Time, Uuid } from './common.ts';
import { METADATA_BYTES_MAX, OPERATION_EFFECTS, OperationIdText } from './invocations.ts';
import { ACRS, PasskeyResponse } from './sign-in.ts';

export const ACTION_TYPE = 'berth.action.v1';
export const ACTION_SECONDS_MIN = 60;
export const ACTION_SECONDS_MAX = 604_800;
export const ACTION_SECONDS_DEFAULT = 86_400;
export const ACTION_WAIT_SECONDS_MAX = 55;
export const REASON_CHARACTERS_MAX = 280;
/**
 * Maximum number of open Actions per end user. Actions that the end user must decide and Actions that only name the end
 * user are both counted.
 */
export const OPEN_ACTIONS_PER_END_USER_MAX = 20;
export const OPEN_ACTIONS_PER_APPLICATION_MAX = 500;
/** Number of days for which an Action is kept after it has ended. */
export const ACTION_RETENTION_DAYS = 90;

export const ACTION_STATUSES = [
  ...['awaiting_approval', 'approved', 'executing', 'succeeded', 'failed', 'ambiguous'],
  ...['refused', 'expired', 'cancelled'],
] as const;
export type ActionStatus = (typeof ACTION_STATUSES)[number];

/** The statuses in which an Action can still be executed. */
export const OPEN_ACTION_STATUSES = ['awaiting_approval', 'approved'] as const satisfies readonly ActionStatus[];

export const APPROVER_KINDS = ['end_user', 'member', 'owner'] as const;
export type ApproverKind = (typeof APPROVER_KINDS)[number];

export const ActionParams = Type.Object({
  appId: Uuid('Id of the application.'),
  jobId: Uuid('Id of the Action.'),
});

export const ApprovalParams = Type.Object({ jobId: Uuid('Id of the Action.') });

const Digest = Type.String({
  pattern: '^sha256:[0-9a-f]{64}$',
  description:
    'Digest of `action`: `sha256:` followed by the digest of its canonical JSON (RFC 8785) in lower-case hex.',
});

/** The digest in a request. Any digest other than that of the Action is refused with `digest_mismatch`. */
const RequestDigest = Type.String({ minLength: 1, maxLength: 128, description: 'The `digest` of the Action.' });

export const EndUser = Type.Object(
  {
    providerId: Type.String({
      minLength: 1,
      maxLength: 64,
      description: 'Id of the provider with which the end user signs in.',
    }),
    subject: Type.String({ minLength: 1, maxLength: 255, description: 'Id of the end user at that provider.' }),
  },
  { additionalProperties: false, description: 'An end user of the application.' },
);
export type EndUser = Static<typeof EndUser>;

export const PrepareAction = Type.Object(
  {
    input: AnyObject('The input, as for a call. It cannot be changed later.', { default: {} }),
    revision: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2_147_483_647,
        description: 'Refuse the request if the operation is at a different revision.',
      }),
    ),
    endUser: Type.Optional(
      Type.Object(EndUser.properties, {
        additionalProperties: false,
        description: 'The end user that the Action is for. Required if an end user approves.',
      }),
    ),
    expiresIn: Type.Optional(
      Type.Integer({
        minimum: ACTION_SECONDS_MIN,
        maximum: ACTION_SECONDS_MAX,
        default: ACTION_SECONDS_DEFAULT,
        description: 'Seconds within which the Action must be approved and executed.',
      }),
    ),
    notBefore: Type.Optional(
      Type.String({ format: 'date-time', description: 'The Action is not executed before this time. ISO 8601.' }),
    ),
    maxCost: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'Maximum cost of the execution, in micro-credits. Defaults to the amount that would be held for the call if it were made now.',
      }),
    ),
    reason: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: REASON_CHARACTERS_MAX,
        description:
          'The reason for the request, shown as plain text to the person who decides, and attributed to the agent. Not part of the digest.',
      }),
    ),
    executeOnApproval: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Execute the Action when it is approved, without another request. The key then also needs `actions:execute`.',
      }),
    ),
    metadata: Type.Optional(
      Type.Record(Type.String(), Type.String({ maxLength: METADATA_BYTES_MAX }), {
        description: `Metadata to keep with the Action and its invocation. At most ${METADATA_BYTES_MAX} bytes of JSON.`,
      }),
    ),
  },
  { additionalProperties: false },
);
export type PrepareAction = Static<typeof PrepareAction>;

export const PrepareHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: '^[\\x20-\\x7e]+$',
      description:
        'Required. Requests with the same key refer to the same Action for as long as that Action is kept. A different request with the same key is refused with `idempotency_conflict`.',
    }),
  ),
});

export const ActionContent = Type.Object(
  {
    typ: Type.Enum([ACTION_TYPE]),
    jobId: Uuid('Id of the Action.'),
    applicationId: Uuid('Id of the application.'),
    operationId: OperationIdText,
    operationRevision: Type.Integer(),
    operationDigest: Type.String({ description: 'Digest of the definition of the operation at that revision.' }),
    input: AnyObject('The input.'),
    endUser: Type.Optional(EndUser),
    bounds: Type.Object(
      {
        maxCost: Type.Integer({ description: 'Maximum cost of the execution, in micro-credits.' }),
        notBefore: Type.Optional(Time('The Action is not executed before this time.')),
        expiresAt: Time('The Action is not executed after this time.'),
        executions: Type.Enum([1]),
      },
      { description: 'The limits that are approved together with the input.' },
    ),
    nonce: Type.String({ description: 'Random value that makes the digest of every Action different.' }),
  },
  { description: 'What is approved: the value that `digest` is computed from.' },
);
export type ActionContent = Static<typeof ActionContent>;

const ApproverName = Type.Object(
  {
    kind: Type.Enum([...APPROVER_KINDS]),
    id: Type.String({ description: 'Id of the account. For an end user, a keyed digest instead of an id.' }),
  },
  { description: 'Who decided.' },
);

const DECISION_METHODS = ['passkey', 'session'] as const;
const DecisionMethod = Type.Enum([...DECISION_METHODS], {
  description: '`passkey`: the digest was signed with a passkey. `session`: the person was signed in.',
});

export const Decision = Type.Object(
  {
    by: ApproverName,
    method: DecisionMethod,
    acr: Type.Enum([...ACRS], { description: 'How strongly the person proved their identity.' }),
    authTime: Time('When the person last proved their identity.'),
    at: Time('When the decision was made.'),
    message: Type.Optional(Type.String({ description: 'The message that the person wrote when refusing.' })),
  },
  { description: 'The decision. Absent until it is made.' },
);
export type Decision = Static<typeof Decision>;

const ACTION_FIELDS = {
  jobId: Uuid('Id of the Action.'),
  status: Type.Enum([...ACTION_STATUSES], {
    description:
      '`executing`: an invocation exists. `succeeded`, `failed` and `ambiguous`: the status of that invocation. `cancelled`: the Action was cancelled, or that invocation was, before it began to run. `expired`: not executed in time.',
  }),
  digest: Digest,
  approver: Type.Enum([...APPROVER_KINDS], { description: 'Who decides.' }),
  approvalUrl: Type.String({
    description: 'The page on which the decision is made. Show it to the person who decides. It contains no secret.',
  }),
  operationId: OperationIdText,
  effect: Type.Enum([...OPERATION_EFFECTS]),
  action: Type.Optional(ActionContent),
  reason: Type.Optional(Type.String({ description: 'The reason that the agent gave.' })),
  executeOnApproval: Type.Boolean(),
  metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
  caller: Type.Object({ keyId: Type.String() }, { description: 'The agent key that prepared the Action.' }),
  createdAt: Time('When the Action was prepared.'),
  expiresAt: Time('When the Action expires.'),
  endedAt: Type.Optional(Time('When the Action ended.')),
  decision: Type.Optional(Decision),
  why: Type.Optional(
    Type.String({
      description:
        'Why the Action was cancelled before it was executed. `caller`: the agent cancelled it. `withdrawn`: its operation was withdrawn or disabled. `end_user_deleted`: its end user was deleted.',
    }),
  ),
  heldBack: Type.Optional(
    Type.String({
      description: 'Code of the error that postponed the execution after approval. The execution is retried.',
    }),
  ),
  invocationId: Type.Optional(Uuid('The invocation that executes the Action.')),
};

export const Action = Type.Object(ACTION_FIELDS, {
  description:
    'A fixed call that is executed at most once, after a person has approved its digest. `action` is present until the Action ends and, after that, for as long as inputs of the operation are kept.',
});
export type Action = Static<typeof Action>;

export const ActionQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: ACTION_WAIT_SECONDS_MAX,
      description: 'Seconds to wait for the status to change.',
    }),
  ),
  since: Type.Optional(
    Type.Enum([...ACTION_STATUSES], { description: 'The status that you last read. Defaults to the current status.' }),
  ),
});
export type ActionQuery = Static<typeof ActionQuery>;

export const ExecuteAction = Type.Object({ digest: RequestDigest }, { additionalProperties: false });
export type ExecuteAction = Static<typeof ExecuteAction>;

const Field = Type.Object({ label: Type.String(), value: Type.String() });

/** An Action as shown to the person who decides. */
export const ApplicationAction = Type.Object(
  {
    ...ACTION_FIELDS,
    application: Type.Object(
      { id: Uuid('Id of the application.'), name: Type.String() },
      { description: 'The application that the Action belongs to.' },
    ),
    operationTitle: Type.String({ description: 'Display name of the operation.' }),
    asksFor: Type.Optional(
      Type.Object(
        {
          summary: Type.String({ description: 'What is approved, in one sentence.' }),
          fields: Type.Array(Field, {
            description: 'The values that the operation selects for display, or the whole input.',
          }),
        },
        {
          description:
            'A description of what is approved, made from the content and the `display` of the operation. Plain text: control characters are shown as escapes, and values are truncated to 200 characters. Absent if the caller may not read inputs, or if the content has been deleted.',
        },
      ),
    ),
    agent: Type.Object(
      { name: Type.String({ description: 'Name of the agent key.' }) },
      { description: 'Who is asking.' },
    ),
    mayDecide: Type.Boolean({ description: 'Whether the Action is undecided and you may decide it.' }),
  },
  { description: 'An Action as shown to people.' },
);
export type ApplicationAction = Static<typeof ApplicationAction>;

export const ApplicationActionPage = Page(ApplicationAction);
export type ApplicationActionPage = Static<typeof ApplicationActionPage>;

export const ActionListQuery = Type.Object({
  status: Type.Optional(
    Type.Enum([...ACTION_STATUSES], {
      description:
        'Only Actions with this status. It can take up to a minute before an expired Action is listed as `expired`.',
    }),
  ),
  ...PageQuery.properties,
});
export type ActionListQuery = Static<typeof ActionListQuery>;

export const DecideAction = Type.Object(
  {
    decision: Type.Enum(['approve', 'refuse']),
    digest: RequestDigest,
    proof: Type.Optional(PasskeyResponse),
    message: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: REASON_CHARACTERS_MAX,
        description: 'With `refuse`, a message to the agent.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type DecideAction = Static<typeof DecideAction>;

export const ActionChallenge = Type.Object(
  {
    publicKey: Type.Optional(
      AnyObject(
        'Options for `navigator.credentials.get`, with the digest as the challenge. Absent if you have no passkey for this page.',
      ),
    ),
  },
  { description: 'What a passkey signs to approve an Action.' },
);
export type ActionChallenge = Static<typeof ActionChallenge>;
