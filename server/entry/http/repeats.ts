// `Idempotency-Key`: the first request with a key is executed, and later identical requests with this key get its
// stored response. For some operations, the response is instead rebuilt from the session that the stored response
// names.
import { catalogueEntry, type ErrorCode, isErrorCode } from '../../../contract/errors.ts';
import { isRepeatable, type OperationId, operation } from '../../../contract/operations.ts';
import { fault, invalidRequest } from '../../domain/faults.ts';
import type { FirstRunResult, Idempotency, IdempotencyRun, Run } from '../../domain/idempotency/idempotency.ts';
import type { Caller } from '../../domain/identity/caller.ts';
import { isFault, reason } from '../../kit/fault.ts';
import type { SessionId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Log } from '../../kit/log.ts';
import type { HttpResponse } from './http-response.ts';

const VALID_KEY = /^[\x20-\x7e]{1,255}$/;

/**
 * Rebuilds the response to a repeated request: the session in its current state, including fields that are not stored.
 */
export interface ResponseBuilder {
  /** Returns the parts of the response body that must be stored, besides the session's id, to rebuild the body. */
  readonly pickStoredParts: (body: JsonObject) => JsonObject;
  readonly rebuild: (input: never, sessionId: SessionId, storedBody: JsonObject) => Promise<HttpResponse>;
}

export type ResponseBuilders = { readonly [Id in OperationId]?: ResponseBuilder };

export interface RepeatedRequest {
  readonly caller: Caller | undefined;
  readonly body: unknown;
  readonly signal: AbortSignal;
}

export interface RepeatsParts {
  readonly idempotency: Pick<Idempotency, 'begin' | 'digestOf'>;
  readonly builders: ResponseBuilders;
  readonly log: Log;
}

export class Repeats {
  readonly #parts: RepeatsParts;

  constructor(parts: RepeatsParts) {
    this.#parts = parts;
  }

  /** Returns the key of a request, if the operation supports one. Throws if the key is malformed. */
  keyOf(id: OperationId, header: string | string[] | undefined): string | undefined {
    if (header === undefined || !isRepeatable(id)) return undefined;
    if (typeof header === 'string' && VALID_KEY.test(header)) return header;
    throw invalidRequest([{ path: 'Idempotency-Key', message: 'must be 1 to 255 printable ASCII characters' }]);
  }

  digestOf(id: OperationId, body: unknown): Buffer {
    return this.#parts.idempotency.digestOf(id, body);
  }

  /** Runs the work, or returns the response to the first request. In the latter case, `onReplay` is called first. */
  async respond(
    { id, key, path }: { readonly id: OperationId; readonly key: string; readonly path: string },
    input: RepeatedRequest,
    work: (run: IdempotencyRun) => Promise<HttpResponse>,
    onReplay: () => void,
  ): Promise<HttpResponse> {
    const outcome = await this.#parts.idempotency.begin(
      {
        owner: ownerOf(input.caller),
        key,
        operation: id,
        path,
        body: input.body,
        isAtomic: id in this.#parts.builders,
      },
      input.signal,
    );
    if ('run' in outcome) return this.#runFirst(id, outcome.run, work);
    onReplay();
    return this.#replay(id, input, outcome.again);
  }

  async #runFirst(
    id: OperationId,
    run: Run,
    work: (run: IdempotencyRun) => Promise<HttpResponse>,
  ): Promise<HttpResponse> {
    const response = await work(run.row).catch(async error => {
      await this.#storeFailure(run, error);
      throw error;
    });
    // The work has had its effect, even if the response cannot be stored.
    await run.keep(this.#storedForm(id, response)).catch(error => this.#logNotWritten(error));
    return response;
  }

  async #storeFailure(run: Run, error: unknown): Promise<void> {
    if (!isFault(error) || !isErrorCode(error.code) || error.code === 'database_unreachable') return run.abandon();
    const { code, message, details = {} } = error;
    const failure = { code, message, details: toPlainJson(details) };
    const end = hadNoEffect(error.code) ? run.release() : run.keep({ failure });
    await end.catch(problem => this.#logNotWritten(problem));
  }

  #storedForm(id: OperationId, { status, headers = {}, body }: HttpResponse): JsonObject {
    const publicBody = withoutSecrets(id, toPlainJson(Object(body)));
    const keptBody = this.#parts.builders[id]?.pickStoredParts(publicBody) ?? publicBody;
    return { headers, ...(status === undefined ? {} : { status }), ...(body === undefined ? {} : { body: keptBody }) };
  }

  async #replay(
    id: OperationId,
    input: RepeatedRequest,
    { sessionId, kept = {} }: FirstRunResult,
  ): Promise<HttpResponse> {
    const { failure, body, headers, status } = kept as StoredResponse; // Written by #storedForm and #storeFailure.
    if (failure) throw fault(failure.code, failure.message, { details: failure.details });
    const builder = this.#parts.builders[id];
    if (builder && sessionId) return builder.rebuild(input as never, sessionId, body ?? {});
    return {
      ...(headers ? { headers } : {}),
      ...(status === undefined ? {} : { status }),
      ...(body === undefined ? {} : { body }),
    };
  }

  #logNotWritten(error: unknown): void {
    this.#parts.log.warn('idempotency.not_written', { reason: reason(error) });
  }
}

interface StoredResponse {
  readonly failure?: { readonly code: ErrorCode; readonly message: string; readonly details: JsonObject };
  readonly body?: JsonObject;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status?: number;
}

/** Whether the request was refused without any effect. If so, the key may be used again. */
const hadNoEffect = (code: ErrorCode): boolean => catalogueEntry(code).status < 500 || code === 'capacity';

function ownerOf(caller: Caller | undefined) {
  if (!caller) throw new Error('a repeatable operation was called without a credential');
  return caller.kind === 'account' ? caller.accountId : caller.applicationId;
}

function withoutSecrets(id: OperationId, body: JsonObject): JsonObject {
  const secretNames = new Set(operation(id).secretFields ?? []);
  return Object.fromEntries(Object.entries(body).filter(([name]) => !secretNames.has(name)));
}

/**
 * Normalizes the object by a round trip through JSON, so that it equals the object that is read from the database
 * later.
 */
const toPlainJson = (value: object): JsonObject => JSON.parse(JSON.stringify(value));
