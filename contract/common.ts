// Schemas that all API objects share: ids, times, errors, warnings, lists. Each kind of object has a file of its own.
import { type Static, type TSchema, Type } from 'typebox';

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

export const Uuid = (description: string) => Type.String({ format: 'uuid', description });

export const Time = (description: string) =>
  Type.String({ format: 'date-time', description: `${description} ISO 8601, UTC, with milliseconds.` });

/** Any JSON object. Its content is described by `description` and checked in code. */
export const AnyObject = (description: string, options: { default?: JsonObject } = {}) =>
  Type.Unsafe<JsonObject>({ type: 'object', description, ...options });

export const Warning = Type.Object(
  {
    code: Type.String({
      description:
        'Stable code for programs: `unknown_field`, `captcha_not_supported`, `region_not_local` or `ignored`.',
    }),
    path: Type.String({
      description: 'Path of the field in the request body, for example `browserSettings.viewport`.',
    }),
    message: Type.String({ description: 'Explanation for people: what was done instead.' }),
  },
  { description: 'A field of the request that was accepted but does not have its full effect.' },
);
export type Warning = Static<typeof Warning>;

export const Issue = Type.Object({
  path: Type.String({ description: 'Path of the field in the request, for example `browserSettings.viewport.width`.' }),
  message: Type.String({ description: 'What was wrong and what was expected.' }),
});
export type Issue = Static<typeof Issue>;

export const ErrorBody = Type.Object(
  {
    statusCode: Type.Integer({ description: 'HTTP status code, as in the status line.' }),
    error: Type.String({ description: 'HTTP reason phrase.' }),
    message: Type.String({ description: 'What happened and what to do next, for people and agents.' }),
    code: Type.String({ description: 'Stable code for programs. See the list of errors.' }),
    requestId: Type.String({
      description:
        'Id of the request, also in the response header `x-request-id`. Include it when you report a problem.',
    }),
    details: Type.Optional(
      AnyObject('Machine-readable details. For `invalid_request`, `issues` is a list of `{path, message}`.'),
    ),
  },
  { description: 'The body of every error.' },
);
export type ErrorBody = Static<typeof ErrorBody>;

export const PAGE_LIMIT_DEFAULT = 25;
export const PAGE_LIMIT_MAX = 100;

/** Query parameters of lists that are read one list page at a time. */
export const PageQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PAGE_LIMIT_MAX,
      default: PAGE_LIMIT_DEFAULT,
      description: 'Maximum number of entries to return.',
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 512,
      description: '`nextCursor` of the previous response. Opaque. Valid for 24 hours.',
    }),
  ),
});
export type PageQuery = Static<typeof PageQuery>;

export const Page = <Item extends TSchema>(item: Item, order = 'Newest first.') =>
  Type.Object({
    data: Type.Array(item, { description: order }),
    nextCursor: Type.Optional(Type.String({ description: 'Present if there are more entries. Pass it as `cursor`.' })),
  });

export const IfMatchHeader = Type.Object({
  'if-match': Type.Optional(
    Type.String({
      description:
        'The `ETag` of the version that you read, for example `"3"`. `*` matches any version. A request without the header is refused with 428, and a request with an outdated value with 412.',
    }),
  ),
});

/** The optional request header `Idempotency-Key`, as a property of a schema of headers. */
export const IdempotencyHeader = {
  'idempotency-key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: '^[\\x20-\\x7e]+$',
      description:
        'Makes it safe to send the write again. For 24 hours, the same request with the same key returns the response of the first request, with the header `idempotency-replayed: true` and without secrets that are shown only once. A different request with the same key is refused with `idempotency_conflict`. A refused request does not use up the key. Printable ASCII.',
    }),
  ),
};

const STRICT_HANDLING_TEXT = 'With `handling=strict`, unknown body fields are refused.';

export const PreferHandlingHeader = { prefer: Type.Optional(Type.String({ description: STRICT_HANDLING_TEXT })) };

export const PreferWaitHeader = {
  prefer: Type.Optional(
    Type.String({
      description: `With \`wait=SECONDS\` (1–55), the request is queued instead of being refused with \`concurrency_limit\`, \`rate_limited\` or \`capacity\`. The queue is first in, first out within an application, and applications take turns. The request leaves the queue when the caller disconnects. ${STRICT_HANDLING_TEXT}`,
    }),
  ),
};

/** Address ranges that a credential may be used from. */
export const CidrAllow = Type.Array(
  Type.String({
    minLength: 2,
    maxLength: 49,
    description: 'Address range in CIDR notation, for example `203.0.113.0/24` or `2001:db8::/32`.',
  }),
  {
    maxItems: 20,
    description:
      'Address ranges that the credential may be used from. If the list is empty, the credential may be used from any address.',
    default: [],
  },
);
