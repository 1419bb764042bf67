// Runs operations of the kind `browser`: inserts the values of the input into the steps of the binding, and performs
// the steps in a session that is created for the call.

import type { SchemaIssue } from '../../engines/schemas/validate-job.ts';
import type { InvocationRow } from '../../engines/store/rows/invocations.ts';
import { addMs, type Clock } from '../../kit/clock.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';
import { bindSteps } from '../configured-operations/browser-binding.ts';
import type { BrowserCallable } from '../configured-operations/callable.ts';
import { inputRetention, outputRetention } from '../configured-operations/retention.ts';
import type { AgentCaller } from '../identity/caller.ts';
import { credentialsIn, type TypedCredentials } from '../stored-credentials/typed-credentials.ts';
import type { ManagedOperations } from './managed.ts';
import type { Outcome, PreparedCall, SuccessfulOutcome } from './prepared.ts';

export interface BrowserOperationsParts {
  readonly managed: Pick<ManagedOperations, 'prepare'>;
  readonly validate: (
    value: unknown,
    schemas: readonly object[],
    jobOwner: string,
  ) => Promise<readonly (readonly SchemaIssue[])[]>;
  readonly typedCredentials: Pick<TypedCredentials, 'findProblem'>;
  readonly clock: Clock;
}

export class BrowserOperations {
  readonly #parts: BrowserOperationsParts;

  constructor(parts: BrowserOperationsParts) {
    this.#parts = parts;
  }

  /** Checks the rules that the input schema cannot express. */
  assertInput({ definition }: BrowserCallable, input: JsonObject): void {
    bindSteps(definition.binding, input);
  }

  /** Whether the credentials that the steps name exist and can be typed. */
  async isConnected({ definition }: BrowserCallable, application: ApplicationId): Promise<boolean> {
    const problem = await this.#parts.typedCredentials.findProblem(
      application,
      credentialsIn(definition.binding.steps),
    );
    return problem === undefined;
  }

  /** Prepares the call. Throws a `Fault` if the session for the call is refused. */
  async prepare(
    caller: AgentCaller,
    operation: BrowserCallable,
    { id, applicationId }: Pick<InvocationRow, 'id' | 'applicationId'>,
    input: JsonObject,
    signal: AbortSignal,
  ): Promise<PreparedCall> {
    const { binding, timeoutMs, retention } = operation.definition;
    const { url: _, steps: __, ...settings } = binding;
    const stepsInput = { ...settings, timeoutMs, ...bindSteps(binding, input) };
    const stepsCall = { operation: 'browser.steps', input: toPlainJson(stepsInput) } as const;
    const preparedCall = await this.#parts.managed.prepare(caller, stepsCall.operation, id, stepsCall.input, signal);
    return {
      ...preparedCall,
      ...inputRetention(retention),
      run: async (row, stop) => this.#checkOutput(operation, applicationId, await preparedCall.run(row, stop)),
    };
  }

  /**
   * Validates the output, without its files, against the output schema. If the output does not match, a call with the
   * effect `read` fails. Any other call is marked as having invalid output.
   */
  async #checkOutput(operation: BrowserCallable, application: ApplicationId, outcome: Outcome): Promise<Outcome> {
    if (outcome.state !== 'succeeded') return outcome;
    const { outputSchema, retention } = operation.definition;
    const output = { ...outcome.output, fields: fieldsIn(outcome.output) };
    const isValid = !outputSchema || (await this.#matches(output, outputSchema, application));
    if (!isValid && operation.effect === 'read')
      return {
        state: 'failed',
        error: {
          code: 'output_invalid',
          message: 'The result of the steps does not match the output schema of the operation.',
          retryable: false,
          phase: 'after',
        },
      };
    const { keptMs, isNotKept } = outputRetention(retention);
    const storedOutcome: SuccessfulOutcome = {
      ...outcome,
      output,
      outputUntil: addMs(this.#parts.clock.now(), keptMs),
    };
    return { ...storedOutcome, ...(isValid ? {} : { outputInvalid: true }), ...(isNotKept ? { isNotKept } : {}) };
  }

  /**
   * Whether the output matches the schema. If the schema cannot be applied in time, the output counts as not matching.
   */
  async #matches(output: JsonObject, schema: JsonObject, application: ApplicationId): Promise<boolean> {
    const [issues = []] = await this.#parts.validate(output, [schema], application).catch(() => [[UNVALIDATED_ISSUE]]);
    return issues.length === 0;
  }
}

const UNVALIDATED_ISSUE: SchemaIssue = { path: '', message: 'could not be validated' };

/** Merges the fields of all `extract` steps. If several fields have the same name, the last one is used. */
function fieldsIn({ results }: JsonObject): JsonObject {
  const resultList = Array.isArray(results) ? results : [];
  return Object.assign(
    {},
    ...resultList.map(result => (isObject(result) && isObject(result.fields) ? result.fields : {})),
  );
}

/** Returns a copy that consists of JSON values only. */
const toPlainJson = (value: object): JsonObject => JSON.parse(JSON.stringify(value));
