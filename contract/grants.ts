// Grants: which operations an agent key may call, and within which bounds.
import { type Static, Type } from 'typebox';
import { AnyObject } from './common.ts';
import { CREDENTIAL_ID_OPTIONS } from './credential-names.ts';

export const GRANTS_PER_KEY_MAX = 100;
const CREDENTIALS_PER_GRANT_MAX = 50;
/** The operation id of a grant that applies to every operation. */
export const ANY_OPERATION = '*';

/** Size limits for the `input` schema of a grant. */
export const INPUT_SCHEMA_BYTES_MAX = 16_384;
export const INPUT_SCHEMA_DEPTH_MAX = 16;
export const INPUT_SCHEMA_PATTERN_CHARACTERS_MAX = 256;

const OperationName = Type.String({
  pattern: '^(\\*|[a-z][a-z0-9]*([._-][a-z0-9]+)*)$',
  maxLength: 64,
  description:
    'Id of the operation, for example `browser.screenshot`. A grant for an operation that does not exist grants nothing. `*` means every operation and is allowed only together with `"effect": "read"`.',
});

export const Grant = Type.Object(
  {
    operationId: OperationName,
    revision: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2_147_483_647,
        description: 'Only this revision of the operation. Default: the published revision.',
      }),
    ),
    effect: Type.Optional(
      Type.Enum(['read'], {
        description:
          'The grant applies only while the operation has the effect `read`, which means that it changes nothing.',
      }),
    ),
    input: Type.Optional(
      AnyObject(
        `JSON Schema (2020-12) that the input must satisfy in addition to the schema of the operation. At most ${INPUT_SCHEMA_BYTES_MAX / 1024} KiB and ${INPUT_SCHEMA_DEPTH_MAX} levels. A \`$ref\` may only refer to \`#/$defs/NAME\`. A \`pattern\` may have at most ${INPUT_SCHEMA_PATTERN_CHARACTERS_MAX} characters, and no backreferences or lookaround. Keywords that are not supported are refused.`,
      ),
    ),
    credentials: Type.Optional(
      Type.Array(Type.String(CREDENTIAL_ID_OPTIONS), {
        maxItems: CREDENTIALS_PER_GRANT_MAX,
        description:
          'For `browser.steps`, the credentials that a call may type into pages. Default: none. Operations that an application configures name their credentials themselves.',
      }),
    ),
    maxCallsPerDay: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000_000,
        description:
          'Maximum number of calls of the operation with this key in a day (UTC). For `*`, the maximum for each operation.',
      }),
    ),
    maxCostPerDay: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'Maximum cost of the calls of the operation with this key in a day (UTC), in micro-credits; for `*`, the maximum for each operation. For a running call the held amount is counted, and for an ended call its cost.',
      }),
    ),
  },
  { description: 'Permission to call one operation, within bounds.' },
);
export type Grant = Static<typeof Grant>;

export const Grants = (description: string) => Type.Array(Grant, { maxItems: GRANTS_PER_KEY_MAX, description });
