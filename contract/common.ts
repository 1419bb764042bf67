// Shapes that every noun shares: ids, times, errors, warnings, lists. The nouns themselves have a file each.
import { type Static, type TSchema, Type } from 'typebox';

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

export const Uuid = (description: string) => Type.String({ format: 'uuid', description });

export const Time = (description: string) =>
  Type.String({ format: 'date-time', description: `${description} ISO 8601, UTC, with milliseconds.` });

/** Any JSON object; what may be in it is said by the description and checked by code. */
export const AnyObject = (description: string, more: { default?: JsonObject } = {}) =>
  Type.Unsafe<JsonObject>({ type: 'object', description, ...more });

export const Warning = Type.Object(
  {
    code: Type.String({
      description: 'Stable word for programs: `unknown_field`, `captcha_not_supported`, `region_not_local`, `ignored`.',
    }),
    path: Type.String({ description: 'Where in the request body, for example `browserSettings.viewport`.' }),
    message: Type.String({ description: 'What was done instead, in words.' }),
  },
  { description: 'Something in the request that was accepted without having the effect its name promises.' },
);
export type Warning = Static<typeof Warning>;

export const Issue = Type.Object({
  path: Type.String({ description: 'Where in the request, for example `browserSettings.viewport.width`.' }),
  message: Type.String({ description: 'What was wrong and what was expected.' }),
});
export type Issue = Static<typeof Issue>;

export const ErrorBody = Type.Object(
  {
    statusCode: Type.Integer({ description: 'The HTTP status again.' }),
    error: Type.String({ description: 'The HTTP reason phrase.' }),
    message: Type.String({ description: 'What happened and what to do next, for people and agents.' }),
    code: Type.String({ description: 'Stable word for programs; see the list of errors.' }),
    requestId: Type.String({
      description: 'Also in the response header `x-request-id`. Name it when you report a problem.',
    }),
    details: Type.Optional(
      AnyObject('Facts for programs. With `invalid_request`: `issues`, a list of `{path, message}`.'),
    ),
  },
  { description: 'The body of every error.' },
);
export type ErrorBody = Static<typeof ErrorBody>;

export const PAGE_LIMIT_DEFAULT = 25;
export const PAGE_LIMIT_MAX = 100;

/** Query of the platform's lists. */
export const PageQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PAGE_LIMIT_MAX,
      default: PAGE_LIMIT_DEFAULT,
      description: 'How many entries at most.',
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 512,
      description: '`nextCursor` of the answer before. Opaque; valid for 24 hours.',
    }),
  ),
});
export type PageQuery = Static<typeof PageQuery>;

export const Page = <Item extends TSchema>(item: Item) =>
  Type.Object({
    data: Type.Array(item, { description: 'Newest first.' }),
    nextCursor: Type.Optional(Type.String({ description: 'Present when there is more: pass it as `cursor`.' })),
  });

export const IfMatchHeader = Type.Object({
  'if-match': Type.Optional(
    Type.String({
      description:
        'The `ETag` of the version you read, for example `"3"`. `*` matches any. Without it 428, with a stale one 412.',
    }),
  ),
});

/** Headers that may be sent or left out, named as they come. */
export const IdempotencyHeader = {
  'idempotency-key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: '^[\\x20-\\x7e]+$',
      description:
        'Makes the write safe to send again: for 24 hours the same request with the same key gets the answer of the first, with the header `idempotency-replayed: true` and without secrets that were shown once; another request answers `idempotency_conflict`. A request that was refused does not use the key up. Printable ASCII.',
    }),
  ),
};

const STRICT = '`handling=strict` refuses fields that the operation does not know.';

export const PreferHandlingHeader = { prefer: Type.Optional(Type.String({ description: STRICT })) };

export const PreferWaitHeader = {
  prefer: Type.Optional(
    Type.String({
      description: `\`wait=SECONDS\` (1–55) stands in line rather than be refused with \`concurrency_limit\`, \`rate_limited\` or \`capacity\`: first come, first served within the application, by turns between applications. The line is left when the caller hangs up. ${STRICT}`,
    }),
  ),
};

/** Address ranges that a credential may be used from. */
export const CidrAllow = Type.Array(
  Type.String({ minLength: 2, maxLength: 49, description: 'For example `203.0.113.0/24` or `2001:db8::/32`.' }),
  { maxItems: 20, description: 'Address ranges the credential may be used from. Empty: from anywhere.', default: [] },
);
