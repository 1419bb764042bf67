// Creates the definition of an operation from the request of a member, and adds defaults. Checks what the schema of the
// contract cannot express. Pure.

import type { Issue } from '../../../contract/common.ts';
import {
  type BrowserBinding,
  type ConfigureOperation,
  HTTP_TIMEOUT_MS_DEFAULT,
  type HttpBinding,
  type OperationApproval,
  SCHEMA_BYTES_MAX,
} from '../../../contract/configured-operations.ts';
import type { OperationEffect } from '../../../contract/invocations.ts';
import { canonicalJson, digestOf } from '../../kit/canonical-json.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';
import { fault, invalidRequest } from '../faults.ts';
import { assertInputSchema } from '../identity/input-schema.ts';
import { bindingIssues } from './binding.ts';
import { browserBindingIssues } from './browser-binding.ts';
import { isPointer } from './json-pointer.ts';

const DEFINITION_BYTES_MAX = 262_144;

/** The content of a revision of a configured operation. */
export interface OperationDefinition<Binding = HttpBinding | BrowserBinding>
  extends Pick<ConfigureOperation, 'display' | 'acknowledgeUnattended'> {
  readonly title: string;
  readonly description: string;
  readonly effect: OperationEffect;
  readonly approval: OperationApproval;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject;
  readonly binding: Binding;
  readonly timeoutMs: number;
  readonly retention: NonNullable<ConfigureOperation['retention']>;
  readonly price: { readonly microCredits: number };
  readonly examples: NonNullable<ConfigureOperation['examples']>;
}

export type HttpDefinition = OperationDefinition<HttpBinding>;
export type BrowserDefinition = OperationDefinition<BrowserBinding>;

/** The kinds of operations that a member can define. A built-in operation can only be given an overlay. */
export type OwnKind = 'http' | 'browser';

export const isBrowserBinding = (binding: HttpBinding | BrowserBinding): binding is BrowserBinding =>
  'steps' in binding;

/** The overlay of a built-in operation. */
export interface OverlayDefinition {
  readonly enabled: boolean;
  readonly approval: OperationApproval;
  readonly price: { readonly microCredits: number };
}

const OVERLAY_FIELDS: readonly string[] = ['enabled', 'approval', 'price'] satisfies Array<keyof ConfigureOperation>;

/**
 * Returns the overlay in the request.
 * @throws Fault `permission_denied` for fields that an overlay cannot have.
 */
export function overlayOf(request: ConfigureOperation): OverlayDefinition {
  const issues = Object.keys(request)
    .filter(name => !OVERLAY_FIELDS.includes(name))
    .map(path => ({
      path,
      message: 'cannot be changed for a built-in operation (only enabled, approval and price can be changed)',
    }));
  if (issues.length > 0)
    throw fault('permission_denied', issues.map(({ path, message }) => `${path} ${message}`).join('; '), {
      details: { issues },
    });
  const { enabled = true, approval = 'none', price = { microCredits: 0 } } = request;
  return { enabled, approval, price };
}

/**
 * Returns the definition in the request, with defaults.
 * @throws Fault `invalid_request` or `invalid_schema`.
 */
export function definitionOf(request: ConfigureOperation): { kind: OwnKind; definition: OperationDefinition } {
  const { title, description, kind, effect, inputSchema, binding } = request;
  const requiredFields = { title, description, kind, effect, inputSchema, binding };
  const missingNames = Object.entries(requiredFields).flatMap(([path, value]) => (value === undefined ? [path] : []));
  if (!title || !description || !kind || !effect || !inputSchema || !binding || missingNames.length > 0)
    throw invalidRequest(missingNames.map(path => ({ path, message: 'is missing' })));
  const { approval = 'none', acknowledgeUnattended, outputSchema, display, retention = {}, examples = [] } = request;
  const definition: OperationDefinition = {
    ...{ title, description, effect, approval, inputSchema, binding, examples },
    ...(acknowledgeUnattended === undefined ? {} : { acknowledgeUnattended }),
    ...(outputSchema === undefined ? {} : { outputSchema }),
    ...(display === undefined ? {} : { display }),
    timeoutMs: request.timeoutMs ?? HTTP_TIMEOUT_MS_DEFAULT,
    retention: { output: 'digest', ...retention },
    price: request.price ?? { microCredits: 0 },
  };
  assertStorable(definition);
  assertSchemas(definition);
  const issues = issuesOf(definition, request);
  if (issues.length > 0) throw invalidRequest(issues);
  return { kind, definition };
}

function assertSchemas({ inputSchema, outputSchema }: OperationDefinition): void {
  assertInputSchema(inputSchema, 'inputSchema', SCHEMA_BYTES_MAX);
  if (outputSchema) assertInputSchema(outputSchema, 'outputSchema', SCHEMA_BYTES_MAX);
  if (inputSchema.type !== 'object')
    throw invalidSchema('inputSchema', 'does not describe an object; expected "type": "object"');
}

export const invalidSchema = (path: string, message: string): Error =>
  fault('invalid_schema', `${path} ${message}.`, { details: { issues: [{ path, message }] } });

function issuesOf(definition: OperationDefinition, { enabled, kind }: ConfigureOperation): Issue[] {
  const { effect, approval, acknowledgeUnattended, inputSchema, binding, display } = definition;
  const isUnattended = effect === 'irreversible' && approval === 'none';
  return [
    ...(enabled === undefined
      ? []
      : [
          {
            path: 'enabled',
            message: 'is allowed only for built-in operations; publish or withdraw this operation instead',
          },
        ]),
    ...(isUnattended && acknowledgeUnattended !== true
      ? [
          {
            path: 'acknowledgeUnattended',
            message: 'must be true if the effect is irreversible and no approval is required',
          },
        ]
      : []),
    ...bindingIssuesOf(kind, binding, propertiesOf(inputSchema)),
    ...(display ? displayIssues(display) : []),
  ];
}

function bindingIssuesOf(
  kind: OwnKind | undefined,
  binding: OperationDefinition['binding'],
  properties: ReadonlySet<string> | undefined,
): Issue[] {
  if (isBrowserBinding(binding) !== (kind === 'browser'))
    return [{ path: 'binding', message: `does not match the kind ${kind}` }];
  return isBrowserBinding(binding) ? browserBindingIssues(binding, properties) : bindingIssues(binding, properties);
}

const propertiesOf = ({ properties }: JsonObject): ReadonlySet<string> | undefined =>
  isObject(properties) ? new Set(Object.keys(properties)) : undefined;

const PLACEHOLDER_PATTERN = /\{\{input((?:\.[A-Za-z0-9_-]{1,64}){1,8})\}\}/g;

const displayIssues = ({ summary, fields = [] }: NonNullable<ConfigureOperation['display']>): Issue[] => [
  ...(/[{}]/.test(summary.replace(PLACEHOLDER_PATTERN, ''))
    ? [
        {
          path: 'display.summary',
          message: 'contains braces that are not part of a placeholder such as {{input.orderId}}',
        },
      ]
    : []),
  ...fields.flatMap(({ value }, index) =>
    isPointer(value)
      ? []
      : [{ path: `display.fields[${index}].value`, message: 'is not a JSON Pointer such as /orderId' }],
  ),
];

/**
 * Throws for a definition that is too large or contains a number that is too large. Also refuses NUL and lone
 * surrogates, which PostgreSQL cannot store in JSON.
 */
function assertStorable(definition: OperationDefinition): void {
  const text = JSON.stringify(definition);
  if (Buffer.byteLength(text) > DEFINITION_BYTES_MAX)
    throw invalidRequest([{ path: '', message: `The operation is larger than ${DEFINITION_BYTES_MAX / 1024} KiB` }]);
  if (/\\u0000|\\ud[89a-f]/i.test(text.replaceAll('\\\\', '')))
    throw invalidRequest([
      {
        path: '',
        message: 'The operation contains a character that cannot be stored: NUL or half of a surrogate pair',
      },
    ]);
  try {
    canonicalJson(definition);
  } catch {
    throw invalidRequest([{ path: '', message: 'The operation contains a number that is too large' }]);
  }
}

/** Returns the digest of the operation. It is computed from everything except price and examples. */
export function digestOfDefinition(
  id: string,
  kind: OwnKind,
  { price: _, examples: __, ...definition }: OperationDefinition,
): string {
  return digestOf({ id, kind, ...definition });
}

export const isSameContent = (one: object, other: object): boolean => canonicalJson(one) === canonicalJson(other);
