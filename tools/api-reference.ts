// The HTTP API reference as one document, generated from the table of operations that validates requests.
import type { TSchema } from 'typebox';
import { headerName, NAMED_SCHEMAS } from '../contract/openapi.ts';
import { type Operation, TAGS } from '../contract/operation.ts';
import {
  errorsOf,
  isRepeatable,
  OPERATION_IDS,
  type OperationId,
  operation,
  optionalHeadersOf,
  pathsOf,
} from '../contract/operations.ts';
import { curlCommandOf, exampleResponseOf } from './api-examples.ts';
import { shapeOf } from './api-shape.ts';

const SCHEMA_NAMES: ReadonlyMap<unknown, string> = new Map(
  Object.entries(NAMED_SCHEMAS).map(([name, schema]) => [schema, name]),
);

const CREDENTIAL_DESCRIPTIONS: Readonly<Record<Operation['credential'], string>> = {
  public: 'none',
  agentKey: 'agent key',
  account: 'personal access token, developer token or sign-in cookie',
  human: 'sign-in cookie of a person',
  deviceCode: 'device code',
  consumer: 'consumer session',
  agentKeyOrAccount: 'agent key, personal access token, developer token or sign-in cookie',
  handoffReader:
    'agent key, personal access token, developer token, sign-in cookie, lease token or secret of the claim link',
  handoffClaimer: 'sign-in cookie of a person, or secret of the claim link',
  handoffLease: 'lease token of the hand-off',
  connect: "the session's signing key, or an agent key",
};

const INTRODUCTION = `Every operation of the HTTP API. OpenAPI 3.1: [YAML](/openapi.yaml), [JSON](/v1/browsers/openapi.json).

## Conventions

- **Credentials.** Browser routes take an agent key (\`bak_…\`), account and application routes a personal access token
  (\`bpt_…\`), in \`Authorization: Bearer\`. An agent key may also be sent as \`X-BB-API-Key\`; if both are sent they must be
  equal. The only secret that is accepted in a query string is the signing key of one session.
- **Writes.** If the response to a write is lost, send the request again only with the same \`Idempotency-Key\`; without
  one, first check whether the write took effect. \`x-should-retry\` says whether sending a refused write again can help.
- **Bodies.** JSON, smaller than 1 MB, nested at most 32 levels. An empty body means \`{}\`. Values of the wrong type are
  refused, never converted. Unknown fields of sessions and contexts are ignored and listed in \`warnings\`, or refused with
  \`Prefer: handling=strict\`; all other operations refuse them.
- **Values.** Ids are UUIDs that sort by creation time. Times are ISO 8601 in UTC with milliseconds. Optional values that
  are absent are omitted, never null. Resources of other applications respond with 404.
- **Revisions.** Resources that people edit have a \`revision\`, which is also the \`ETag\` (in quotes). Send it as
  \`If-Match\` with a change: 428 without it, 412 when the resource has changed.
- **Requests.** Every response has \`x-request-id\`. A caller may send its own: 8 to 128 letters, digits and \`._:-\`.
- **Errors.** All errors have one [body](#error-object) and a stable \`code\`: see [errors](errors.md).`;

export function apiReference(note: string): string {
  const tags = Object.entries(TAGS).flatMap(([tag, description]) => [
    `## ${tag}`,
    description,
    ...OPERATION_IDS.filter(id => operation(id).tag === tag).flatMap(operationBlocks),
  ]);
  const objects = Object.entries(NAMED_SCHEMAS).flatMap(([name, schema]) => [
    `### ${name} object`,
    ...(shapeOf(schema).description ? [shapeOf(schema).description] : []),
    ...fieldTable(schema),
  ]);
  const intro = ['# API', `<!-- ${note} -->`, INTRODUCTION];
  return `${[...intro, ...tags, '## Objects', ...objects].join('\n\n')}\n`;
}

function operationBlocks(id: OperationId): string[] {
  const operationEntry = operation(id);
  const responseExample = exampleResponseOf(id, operationEntry);
  return [
    `### ${operationEntry.summary}`,
    `\`${operationEntry.method} ${operationEntry.path}\``,
    operationEntry.description,
    operationFacts(id, operationEntry),
    `\`\`\`sh\n${curlCommandOf(operationEntry)}\n\`\`\``,
    ...titledTable('Path parameters', operationEntry.params, { areAllRequired: true }),
    ...titledTable('Query parameters', operationEntry.query),
    ...titledTable('Headers', operationEntry.headers, {
      areAllRequired: requiresIfMatch(operationEntry.headers),
      nameOf: headerName,
    }),
    ...titledTable('Optional headers', optionalHeadersOf(id), { nameOf: headerName }),
    ...(operationEntry.body
      ? [operationEntry.oauth ? '**Body**: JSON, or a form (`application/x-www-form-urlencoded`).' : '**Body**']
      : []),
    ...(operationEntry.body ? contentOf(operationEntry.body) : []),
    ...(operationEntry.upload
      ? [`**Body**: \`multipart/form-data\` with one part, a file named \`file\`: ${operationEntry.upload.description}`]
      : []),
    ...Object.entries(operationEntry.responses).flatMap(([status, { description, schema, headers = {} }]) => [
      `**Response ${status}**: ${description}`,
      ...(Object.keys(headers).length > 0
        ? [
            Object.entries(headers)
              .map(([name, words]) => `- \`${name}\`: ${words}`)
              .join('\n'),
          ]
        : []),
      ...(schema ? contentOf(schema) : []),
    ]),
    ...(responseExample === undefined ? [] : [`\`\`\`json\n${JSON.stringify(responseExample, null, 2)}\n\`\`\``]),
    `**[Errors](errors.md)**: ${errorsOf(id)
      .map(error => `\`${error}\``)
      .join(', ')}`,
  ];
}

function operationFacts(id: OperationId, { credential, scopes, isWrite }: Operation): string {
  const otherPaths = pathsOf(id, true).slice(1);
  return [
    `- Credential: ${CREDENTIAL_DESCRIPTIONS[credential]}`,
    ...(scopes ? [`- Scope: ${scopes.map(scope => `\`${scope}\``).join(' or ')}`] : []),
    ...(isWrite
      ? [`- Write, ${isRepeatable(id) ? 'safe to repeat with an `Idempotency-Key`' : 'not safe to repeat'}`]
      : []),
    ...(otherPaths.length > 0 ? [`- Also at ${otherPaths.map(({ path }) => `\`${path}\``).join(', ')}`] : []),
  ].join('\n');
}

/**
 * Whether the operation requires the header If-Match with the version that the change is based on. The header is
 * optional in the schema, because a request without it gets the response 428.
 */
const requiresIfMatch = (headers: TSchema | undefined): boolean =>
  headers !== undefined && Object.hasOwn(shapeOf(headers).properties ?? {}, 'if-match');

interface FieldOptions {
  readonly areAllRequired?: boolean;
  readonly nameOf?: (name: string) => string;
}

const titledTable = (title: string, schema: TSchema | undefined, options: FieldOptions = {}): string[] =>
  schema && hasFields(schema) ? [`**${title}**`, ...fieldTable(schema, options)] : [];

/** Returns a reference to the schema if it has a name, otherwise the table of its fields. */
function contentOf(schema: TSchema): string[] {
  const itemSchema = shapeOf(schema).items ?? schema;
  if (SCHEMA_NAMES.has(itemSchema)) return [`${capitalise(typeOf(schema))}.`];
  return fieldTable(itemSchema);
}

// ---- fields --------------------------------------------------------------------------------------------------------

const hasFields = (schema: TSchema): boolean => Object.keys(shapeOf(schema).properties ?? {}).length > 0;

function fieldTable(schema: TSchema, options: FieldOptions = {}): string[] {
  const rows = [...rowsOf(schema, '', options)];
  if (rows.length === 0) return [];
  return [['| Field | Type | Description |', '| --- | --- | --- |', ...rows].join('\n')];
}

function* rowsOf(schema: TSchema, prefix: string, options: FieldOptions = {}): Generator<string> {
  const { properties = {}, required = [], anyOf = [] } = shapeOf(schema);
  for (const choice of anyOf) yield* rowsOf(choice, prefix);
  const { areAllRequired = false, nameOf = (name: string) => name } = options;
  for (const [key, fieldSchema] of Object.entries(properties)) {
    const name = prefix + nameOf(key);
    const { description = '', default: fallback } = shapeOf(fieldSchema);
    const type = `${typeOf(fieldSchema)}${areAllRequired || required.includes(key) ? ', required' : ''}`;
    const sentences = [description, ...(fallback === undefined ? [] : [`Default: \`${JSON.stringify(fallback)}\`.`])];
    yield row(`\`${name}\``, type, sentences.filter(Boolean).join(' '));
    if (!isNamed(fieldSchema))
      yield* rowsOf(shapeOf(fieldSchema).items ?? fieldSchema, shapeOf(fieldSchema).items ? `${name}[].` : `${name}.`);
  }
}

const isNamed = (schema: TSchema): boolean => SCHEMA_NAMES.has(schema) || SCHEMA_NAMES.has(shapeOf(schema).items);

const row = (...cells: readonly string[]): string =>
  `| ${cells.map(cell => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;

function typeOf(schema: TSchema): string {
  const name = SCHEMA_NAMES.get(schema);
  if (name) return `[${name}](#${name.toLowerCase()}-object)`;
  const {
    type,
    format,
    anyOf,
    items,
    enum: enumValues,
    const: constValue,
    minimum,
    maximum,
    maxLength,
    maxItems,
  } = shapeOf(schema);
  if (anyOf) return [...new Set(anyOf.map(typeOf))].join(' or ');
  if (constValue !== undefined) return `\`${JSON.stringify(constValue)}\``;
  if (enumValues) return enumValues.map(one => `\`${JSON.stringify(one)}\``).join(', ');
  if (items) return `list of ${maxItems === undefined ? '' : `at most ${maxItems}: `}${typeOf(items)}`;
  if (type === 'integer' || type === 'number') return `${type}${rangeText(minimum, maximum)}`;
  if (format === 'uuid') return 'UUID';
  if (format === 'date-time') return 'time';
  return `${type ?? 'any'}${maxLength === undefined ? '' : `, at most ${maxLength} characters`}`;
}

function rangeText(min: number | undefined, max: number | undefined): string {
  if (max === undefined || max === Number.MAX_SAFE_INTEGER) return min === undefined ? '' : ` from ${min}`;
  return min === undefined ? ` up to ${max}` : ` ${min} to ${max}`;
}

const capitalise = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
