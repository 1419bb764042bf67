// Operations that an application configures. They are HTTP calls and browser steps, which have schemas, and built-in
// operations with changed settings.
import { type Static, Type } from 'typebox';
import { AnyObject, Page, PageQuery, Time, Uuid } from './common.ts';
import { CREDENTIAL_ID_OPTIONS } from './credential-names.ts';
import { TTL_SECONDS_MAX } from './handoffs.ts';
import { OPERATION_EFFECTS, OperationIdText } from './invocations.ts';
import { PAGE_INPUT, STEPS_MAX, Step } from './managed-operations.ts';

export const OPERATIONS_PER_APPLICATION_MAX = 500;
/** Number of revisions that are kept. Older ones are deleted, except those that are published or running. */
export const REVISIONS_KEPT_MAX = 100;
export const SCHEMA_BYTES_MAX = 65_536;
export const HTTP_TIMEOUT_MS_MAX = 120_000;
export const HTTP_TIMEOUT_MS_DEFAULT = 20_000;
export const RESPONSE_BYTES_MAX = 4_194_304;
export const RESPONSE_BYTES_DEFAULT = 1_048_576;
export const RETENTION_DAYS_MAX = 31;
export const RETENTION_DAYS_DEFAULT = 7;
const MAPPINGS_MAX = 32;

/** Words that the ids of built-in operations begin with. Ids of other operations must not begin with them. */
export const RESERVED_WORDS = ['browser', 'session', 'memory', 'berth'] as const;

/** Who must approve a call, from the weakest requirement to the strongest. */
export const OPERATION_APPROVALS = ['none', 'end_user', 'member', 'owner'] as const;
export type OperationApproval = (typeof OPERATION_APPROVALS)[number];

export const OPERATION_STATUSES = ['draft', 'published', 'withdrawn'] as const;
export const OPERATION_KINDS = ['managed', 'http', 'browser'] as const;

export const HTTP_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export const AUTH_FORMS = ['bearer', 'basic', 'header'] as const;

const Pointer = Type.String({ maxLength: 256 });
const HeaderName = (description: string) => Type.String({ minLength: 1, maxLength: 64, description });

const Auth = Type.Object(
  {
    credentialId: Type.String({
      ...CREDENTIAL_ID_OPTIONS,
      description: 'Id of a credential of the application. The host of `url` must be one of its `hosts`.',
    }),
    as: Type.Enum([...AUTH_FORMS], {
      description:
        '`bearer`: the key, in `Authorization: Bearer`. `header`: the key, in the header that `header` names. `basic`: name and password, or client id and secret, in `Authorization: Basic`.',
    }),
    header: Type.Optional(HeaderName('With `"as": "header"`, the name of the header.')),
  },
  { description: 'How the call is authenticated.' },
);

export const HttpBinding = Type.Object(
  {
    method: Type.Enum([...HTTP_METHODS], { description: 'HTTP method.' }),
    url: Type.String({
      minLength: 1,
      maxLength: 2048,
      description:
        'The address. Variables such as `{orderId}` in the path and the query are replaced by members of the input, percent-encoded. Host and port are fixed. `https` only, except for addresses that the operator has allowed.',
    }),
    query: Type.Optional(
      Type.Record(Type.String({ minLength: 1, maxLength: 64 }), Pointer, {
        maxProperties: MAPPINGS_MAX,
        description:
          'Query parameters, each with the JSON Pointer of its value in the input. Absent values are omitted.',
      }),
    ),
    headers: Type.Optional(
      Type.Record(Type.String({ minLength: 1, maxLength: 64 }), Pointer, {
        maxProperties: MAPPINGS_MAX,
        description: 'Headers, each with the JSON Pointer of its value in the input. Absent values are omitted.',
      }),
    ),
    fixedHeaders: Type.Optional(
      Type.Record(Type.String({ minLength: 1, maxLength: 64 }), Type.String({ maxLength: 512 }), {
        maxProperties: MAPPINGS_MAX,
        description: 'Headers with a fixed value. Do not put secrets here: use a credential.',
      }),
    ),
    body: Type.Optional(
      Type.Object(
        { from: Pointer },
        {
          description:
            'JSON Pointer of the part of the input that is sent as the JSON body. `/` and the empty string mean the whole input.',
        },
      ),
    ),
    auth: Type.Optional(Auth),
    idempotencyHeader: Type.Optional(
      HeaderName(
        'Header in which the upstream service expects an idempotency key. The id of the invocation is sent as the key, and an interrupted call is sent once more with the same key.',
      ),
    ),
    sign: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Sign the call with HTTP Message Signatures (RFC 9421, Ed25519) and a key from `/.well-known/jwks.json`. `Content-Digest`, `Date`, `Idempotency-Key` and `Berth-Invocation-Id` are then sent, and are signed together with the method and the address.',
      }),
    ),
    successStatus: Type.Optional(
      Type.Array(Type.Integer({ minimum: 200, maximum: 299 }), {
        minItems: 1,
        maxItems: 20,
        description: 'Statuses that mean success. Default: 200 to 299.',
      }),
    ),
    maxResponseBytes: Type.Optional(
      Type.Integer({
        minimum: 1024,
        maximum: RESPONSE_BYTES_MAX,
        default: RESPONSE_BYTES_DEFAULT,
        description: 'Maximum size of the response, in bytes. A larger response is not read.',
      }),
    ),
  },
  { description: 'The HTTP call. Redirects are never followed.' },
);
export type HttpBinding = Static<typeof HttpBinding>;

const AddressTemplate = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: 2048,
    description: `${description} Variables such as \`{orderId}\` in the path and the query are replaced by members of the input, percent-encoded. Host and port are fixed.`,
  });

const FromInput = Type.Object(
  { from: Pointer },
  { additionalProperties: false, description: 'JSON Pointer of the part of the input to use.' },
);

/** A step of `browser.steps` whose values may come from the input. */
export const BindableStep = Type.Object(
  {
    ...Step.properties,
    url: Type.Optional(AddressTemplate('Of `goto`.')),
    value: Type.Optional(
      Type.Union([Type.String({ maxLength: 20_000 }), FromInput], {
        description: 'The text that `fill` enters into the field, or `{"from": "/name"}` for a member of the input.',
      }),
    ),
    values: Type.Optional(
      Type.Union([Type.Array(Type.String({ maxLength: 1000 }), { maxItems: 100 }), FromInput], {
        description: 'The options that `select` selects: a list, or `{"from": "/sizes"}` for a member of the input.',
      }),
    ),
  },
  { additionalProperties: false },
);

const { waitUntil, acceptStatus, viewport, contextId, proxies } = PAGE_INPUT;
const { allowedDomains, networkPolicy, userAgent, locale, timezoneId } = PAGE_INPUT;

export const BrowserBinding = Type.Object(
  {
    url: Type.Optional(AddressTemplate('The page that is opened first. If absent, the first step must be a `goto`.')),
    steps: Type.Array(BindableStep, {
      minItems: 1,
      maxItems: STEPS_MAX,
      description: 'The steps to perform in the page, as in the operation `browser.steps`.',
    }),
    ...{ waitUntil, acceptStatus, viewport, contextId, proxies },
    ...{ allowedDomains, networkPolicy, userAgent, locale, timezoneId },
  },
  { description: 'Steps in a browser session that is created for the call and released after it.' },
);
export type BrowserBinding = Static<typeof BrowserBinding>;

const Binding = Type.Union([HttpBinding, BrowserBinding], {
  description: 'For an `http` operation, the call. For a `browser` operation, the steps.',
});

export const Price = Type.Object(
  {
    microCredits: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Price of one call.' }),
  },
  {
    description:
      'Price of a call, in micro-credits, in addition to the cost of its time and traffic. If the operator charges credit, credit for the price is held when the call starts, and captured when the call succeeds.',
  },
);

const Display = Type.Object(
  {
    summary: Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'One sentence for the person who approves. `{{input.orderId}}` stands for a member of the input.',
    }),
    fields: Type.Optional(
      Type.Array(Type.Object({ label: Type.String({ minLength: 1, maxLength: 60 }), value: Pointer }), {
        maxItems: 20,
        description: 'JSON Pointers of the members of the input that are shown.',
      }),
    ),
  },
  { description: 'How the input is shown to the person who approves the call.' },
);

const Retention = Type.Object(
  {
    input: Type.Optional(
      Type.Enum(['digest', 'full'], {
        default: 'digest',
        description:
          '`full`: the input is kept, sealed, for the number of days in `days`. `digest`: the input is removed when the call ends, and only its digest is kept.',
      }),
    ),
    output: Type.Optional(
      Type.Enum(['none', 'digest', 'full'], {
        default: 'digest',
        description:
          '`full`: the output is kept for the number of days in `days`. `digest`: the output can be read for ten minutes after the call has ended; after that, only its digest is kept. `none`: only the response to a call that waits for the end contains the output, and not even its digest is kept.',
      }),
    ),
    days: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: RETENTION_DAYS_MAX,
        default: RETENTION_DAYS_DEFAULT,
        description: 'Number of days for which `full` keeps the input or the output.',
      }),
    ),
  },
  { description: 'How much of the input and the output of a call is kept.' },
);

const Examples = Type.Array(Type.Object({ input: AnyObject('An input that matches `inputSchema`.') }), {
  maxItems: 20,
  description: 'Examples for agents.',
});

const Approval = Type.Enum([...OPERATION_APPROVALS], {
  description:
    'Who must approve each call. With any value other than `none`, agents prepare an Action instead of calling.',
});
const Effect = Type.Enum([...OPERATION_EFFECTS], {
  description:
    '`read`: the operation changes nothing, and a call is repeated after a failure of the service. `write` and `irreversible`: the call is sent at most once, or once more with the same `idempotencyHeader`.',
});
const Title = Type.String({ minLength: 1, maxLength: 100, description: 'Display name.' });
const Description = Type.String({
  minLength: 1,
  maxLength: 2000,
  description: 'Description of the operation, for agents.',
});
const Timeout = Type.Integer({
  minimum: 1000,
  maximum: HTTP_TIMEOUT_MS_MAX,
  default: HTTP_TIMEOUT_MS_DEFAULT,
  description: 'Time limit of a call in milliseconds.',
});
/** Built-in operations that wait for a person may take as long as their hand-off. */
const OperationTimeout = Type.Integer({
  minimum: 1000,
  maximum: 1000 * TTL_SECONDS_MAX,
  description:
    'Time limit of a call in milliseconds. For a built-in operation that waits for a person, the maximum waiting time.',
});
const EnabledFlag = Type.Boolean({
  description: 'For a built-in operation, whether agents may call it. Default: true.',
});
const UnattendedAcknowledgement = Type.Boolean({
  description: 'Must be `true` for an `irreversible` operation without approval.',
});
const InputSchema = AnyObject(
  `JSON Schema (2020-12) of the input, which is an object. At most ${SCHEMA_BYTES_MAX / 1024} KiB and 16 levels. A \`$ref\` may only refer to \`#/$defs/NAME\`. A \`pattern\` may have at most 256 characters, and no backreferences or lookaround.`,
);
const OutputSchema = AnyObject(
  'JSON Schema (2020-12) of the output. If the output does not match, an invocation with the effect `read` fails, and any other is marked with `outputInvalid`.',
);

export const ConfigureOperation = Type.Object({
  title: Type.Optional(Title),
  description: Type.Optional(Description),
  kind: Type.Optional(
    Type.Enum(['http', 'browser'], {
      description: '`http`: a call to an HTTP service. `browser`: steps in a browser session.',
    }),
  ),
  effect: Type.Optional(Effect),
  approval: Type.Optional(Approval),
  acknowledgeUnattended: Type.Optional(UnattendedAcknowledgement),
  inputSchema: Type.Optional(InputSchema),
  outputSchema: Type.Optional(OutputSchema),
  display: Type.Optional(Display),
  binding: Type.Optional(Binding),
  timeoutMs: Type.Optional(Timeout),
  retention: Type.Optional(Retention),
  price: Type.Optional(Price),
  examples: Type.Optional(Examples),
  enabled: Type.Optional(EnabledFlag),
});
export type ConfigureOperation = Static<typeof ConfigureOperation>;

export const ConfiguredOperation = Type.Object(
  {
    id: OperationIdText,
    kind: Type.Enum([...OPERATION_KINDS], { description: '`managed`: a built-in operation.' }),
    status: Type.Enum([...OPERATION_STATUSES], {
      description: 'Agents can call a `published` operation, in its last published revision.',
    }),
    revision: Type.Integer({
      description: 'Increases with every change of the content. The `ETag` is this number in double quotes.',
    }),
    publishedRevision: Type.Optional(
      Type.Integer({
        description:
          'The revision that agents call. If the operation is not published now, the revision that was published last.',
      }),
    ),
    digest: Type.String({
      description: '`sha256:` followed by the digest of everything except `price` and `examples`.',
    }),
    title: Title,
    description: Description,
    effect: Effect,
    approval: Approval,
    acknowledgeUnattended: Type.Optional(UnattendedAcknowledgement),
    enabled: Type.Optional(EnabledFlag),
    inputSchema: InputSchema,
    outputSchema: Type.Optional(OutputSchema),
    display: Type.Optional(Display),
    binding: Type.Optional(Binding),
    timeoutMs: OperationTimeout,
    retention: Type.Optional(Retention),
    price: Price,
    examples: Examples,
    createdAt: Type.Optional(Time('When the operation was created. Absent for a built-in operation without changes.')),
    updatedAt: Type.Optional(Time('When the operation was last changed.')),
  },
  { description: 'The configuration of an operation.' },
);
export type ConfiguredOperation = Static<typeof ConfiguredOperation>;

export const ConfiguredOperationPage = Page(ConfiguredOperation, 'Ordered by id.');
export type ConfiguredOperationPage = Static<typeof ConfiguredOperationPage>;

export const ConfiguredOperationListQuery = Type.Object({
  kind: Type.Optional(Type.Enum([...OPERATION_KINDS], { description: 'Only operations of this kind.' })),
  ...PageQuery.properties,
});
export type ConfiguredOperationListQuery = Static<typeof ConfiguredOperationListQuery>;

export const ConfiguredOperationQuery = Type.Object({
  revision: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'An earlier revision. Default: the newest.' }),
  ),
});

export const ConfiguredOperationParams = Type.Object({
  appId: Uuid('Id of the application.'),
  id: OperationIdText,
});
