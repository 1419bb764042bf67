// Validates a value against JSON Schemas (2020-12). Runs in a worker thread, because schemas and values come from
// callers, and matching a pattern may take a long time.
import { createHash } from 'node:crypto';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

export interface SchemaIssue {
  readonly path: string;
  readonly message: string;
}

export interface ValidateInput {
  readonly value: unknown;
  readonly schemas: readonly object[];
}

/**
 * `issues`: one list for each schema, in the order of the schemas, with the issues of the value. The list is empty if
 * the value matches. `unusable`: the reason why a schema cannot be compiled.
 */
export type ValidateOutput = { readonly issues: ReadonlyArray<readonly SchemaIssue[]> } | { readonly unusable: string };

const COMPILED_SCHEMAS_MAX = 200;
const ISSUES_MAX = 20;
const MESSAGE_CHARACTERS_MAX = 300;

/** Compiled schemas, by the digest of the schema, least recently used first. */
const validators = new Map<string, ValidateFunction>();

export function work({ value, schemas }: ValidateInput): ValidateOutput {
  try {
    return { issues: schemas.map(schema => issuesOf(validatorOf(schema), value)) };
  } catch (error) {
    return { unusable: error instanceof Error ? error.message.slice(0, MESSAGE_CHARACTERS_MAX) : 'unknown error' };
  }
}

/** Whether the value matches the schema. Throws if the schema cannot be compiled. */
export const matchesSchema = (schema: object, value: unknown): boolean => validatorOf(schema)(value) === true;

function validatorOf(schema: object): ValidateFunction {
  const digest = createHash('sha256').update(JSON.stringify(schema)).digest('base64');
  const validate = validators.get(digest) ?? compile(schema);
  validators.delete(digest);
  validators.set(digest, validate);
  const [oldest] = validators.keys();
  if (validators.size > COMPILED_SCHEMAS_MAX && oldest !== undefined) validators.delete(oldest);
  return validate;
}

/** Uses a separate instance of Ajv for each schema, so that schemas cannot refer to each other. */
function compile(schema: object): ValidateFunction {
  const ajv = new Ajv2020({ strict: false, allErrors: false, validateSchema: true, logger: false });
  addFormats.default(ajv);
  return ajv.compile(schema);
}

const issuesOf = (validate: ValidateFunction, value: unknown): readonly SchemaIssue[] =>
  validate(value) ? [] : (validate.errors ?? []).slice(0, ISSUES_MAX).map(issueOf);

function issueOf({ instancePath, message = 'is not valid', params }: ErrorObject): SchemaIssue {
  const propertyText = 'additionalProperty' in params ? ` (${String(params.additionalProperty).slice(0, 64)})` : '';
  const allowedValuesText = Array.isArray(params.allowedValues) ? `: ${params.allowedValues.join(', ')}` : '';
  return {
    path: instancePath.slice(1).replaceAll('/', '.').slice(0, MESSAGE_CHARACTERS_MAX),
    message: `${message}${propertyText}${allowedValuesText}`.slice(0, MESSAGE_CHARACTERS_MAX),
  };
}
