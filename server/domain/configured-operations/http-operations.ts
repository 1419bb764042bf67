// Runs operations of the kind `http`: sends one request with the credential of the binding, and interprets the
// response.
import { RESPONSE_BYTES_DEFAULT } from '../../../contract/configured-operations.ts';
import type { ResponseInput, ResponseOutput } from '../../engines/schemas/response-job.ts';
import type { InvocationRow } from '../../engines/store/rows/invocations.ts';
import { addMs } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import type { ApplicationId } from '../../kit/ids.ts';
import type { JsonObject } from '../../kit/json.ts';
import type { Runtime } from '../../kit/runtime.ts';
import { fault } from '../faults.ts';
import type { Outcome, PreparedCall } from '../invocations/prepared.ts';
import type { CallCredential, CallCredentials } from '../stored-credentials/call-credentials.ts';
import type { HttpCallable } from './callable.ts';
import { outcomeOfFailure, outcomeOfInvalidOutput, outcomeOfStatus, outcomeOfUnreadable } from './http-outcome.ts';
import { type PlainRequest, requestOf } from './http-request.ts';
import { IDEMPOTENCY_KEY_HEADER, type MessageSigner, signatureHeaders } from './message-signature.ts';
import type { Outbound, OutboundResponse } from './outbound.ts';
import { inputRetention, outputRetention } from './retention.ts';
import { readTemplate } from './url-template.ts';

export interface HttpOperationsParts extends Pick<Runtime, 'clock' | 'log'> {
  readonly outbound: Pick<Outbound, 'send'>;
  readonly credentials: Pick<CallCredentials, 'openForCall' | 'countUse' | 'findProblem'>;
  readonly readResponse: (input: ResponseInput, jobOwner: string) => Promise<ResponseOutput>;
  /** Returns a signer for the signing key that is currently active. */
  readonly signer: () => Promise<MessageSigner>;
}

/** Maximum number of concurrent calls per application in this process. */
const CONCURRENT_CALLS_MAX = 100;
/** Maximum number of characters of an upstream error that are kept. */
const ERROR_CHARACTERS_MAX = 2_000;

const NO_CREDENTIAL: CallCredential = { headers: {}, secrets: [] };

export class HttpOperations {
  readonly #parts: HttpOperationsParts;
  readonly #runningCallCounts = new Map<ApplicationId, number>();

  constructor(parts: HttpOperationsParts) {
    this.#parts = parts;
  }

  /** @throws Fault `invalid_request` if no HTTP request can be made from the input. */
  assertInput({ definition }: HttpCallable, input: JsonObject): void {
    requestOf(definition.binding, input);
  }

  /** Whether the credential that the binding names exists, and may be sent to its host. */
  async isConnected({ definition }: HttpCallable, application: ApplicationId): Promise<boolean> {
    const { auth, url } = definition.binding;
    const template = readTemplate(url);
    if (!auth || typeof template === 'string') return true;
    return (await this.#parts.credentials.findProblem(application, auth, template.host)) === undefined;
  }

  /**
   * Returns the function that sends the request.
   * @throws Fault if nothing can be sent.
   */
  async prepare(operation: HttpCallable, row: InvocationRow, input: JsonObject): Promise<PreparedCall> {
    const { definition, id } = operation;
    const { binding } = definition;
    const { applicationId, keyId } = row;
    const request = requestOf(binding, input);
    const template = readTemplate(binding.url);
    if (typeof template === 'string') throw new Error(`the stored URL of operation ${id} ${template}`);
    const releaseCall = this.#countCall(applicationId);
    try {
      const { auth } = binding;
      const credential = auth
        ? await this.#parts.credentials.openForCall(applicationId, auth, template.host)
        : NO_CREDENTIAL;
      // The signing key is read before the dispatch, so that the call is refused if the key cannot be read.
      const signer = binding.sign ? await this.#parts.signer() : undefined;
      const run = async (dispatchedRow: InvocationRow, signal: AbortSignal): Promise<Outcome> => {
        if (auth) void this.#countUse({ applicationId, keyId, operationId: id, credentialId: auth.credentialId });
        const outcome = await this.#send(definition, dispatchedRow, { ...request, signer }, credential, signal);
        return { ...outcome, upstream: { host: template.host, ...outcome.upstream } };
      };
      return { run, release: async () => releaseCall(), ...inputRetention(definition.retention) };
    } catch (error) {
      releaseCall();
      throw error;
    }
  }

  async #send(
    { binding, effect, outputSchema, timeoutMs, retention }: HttpCallable['definition'],
    row: InvocationRow,
    { signer, ...request }: PlainRequest & { readonly signer: MessageSigner | undefined },
    { headers, secrets }: CallCredential,
    signal: AbortSignal,
  ): Promise<Outcome & { readonly upstream?: { readonly status: number } }> {
    const { idempotencyHeader, maxResponseBytes = RESPONSE_BYTES_DEFAULT, successStatus } = binding;
    const { outbound, clock } = this.#parts;
    const idempotencyHeaders = idempotencyHeader === undefined ? {} : { [idempotencyHeader]: row.id };
    const isKeySigned = signer && idempotencyHeader?.toLowerCase() === IDEMPOTENCY_KEY_HEADER;
    const signedHeaders = signer ? signatureHeaders({ ...request, invocationId: row.id }, clock.now(), signer) : {};
    const allHeaders = { ...request.headers, ...headers, ...(isKeySigned ? {} : idempotencyHeaders), ...signedHeaders };
    const sendResult = await outbound.send(
      { ...request, headers: allHeaders, deadlineMs: timeoutMs, maxResponseBytes },
      signal,
    );
    if (sendResult.kind === 'failed') {
      signal.throwIfAborted();
      return {
        ...outcomeOfFailure(effect, sendResult),
        ...(sendResult.status === undefined ? {} : { upstream: { status: sendResult.status } }),
      };
    }
    const { status } = sendResult;
    const upstream = { status };
    const isSuccess = successStatus ? successStatus.includes(status) : status >= 200 && status < 300;
    const isHead = request.method === 'HEAD';
    const parsedResponse = await this.#read(
      sendResult,
      isHead ? Buffer.alloc(0) : sendResult.body,
      secrets,
      isSuccess ? outputSchema : undefined,
      row,
    );
    if (!isSuccess) return { ...outcomeOfStatus(effect, status, excerptOf(parsedResponse)), upstream };
    if ('why' in parsedResponse) return { ...outcomeOfUnreadable(effect, status, parsedResponse.why), upstream };
    const { output, digest, isValid } = parsedResponse;
    if (!isValid && effect === 'read') return { ...outcomeOfInvalidOutput(status), upstream };
    const { keptMs, isNotKept } = outputRetention(retention);
    return {
      ...{ state: 'succeeded', output, outputDigest: digest, outputUntil: addMs(clock.now(), keptMs), upstream },
      ...(isValid ? {} : { outputInvalid: true }),
      ...(isNotKept ? { isNotKept } : {}),
    };
  }

  /** Reads the response. If the schema cannot be applied in time, the response counts as not matching the schema. */
  async #read(
    { headers }: OutboundResponse,
    body: Buffer,
    secrets: readonly string[],
    schema: JsonObject | undefined,
    { applicationId, id }: InvocationRow,
  ): Promise<ResponseOutput> {
    const responseInput = { body, contentType: headers.get('content-type') ?? '', secrets };
    const { readResponse, log } = this.#parts;
    const logFailure = (error: unknown): void =>
      log.warn('invocation.answer_not_read', { invocationId: id, reason: reason(error) });
    if (schema)
      try {
        return await readResponse({ ...responseInput, schema }, applicationId);
      } catch (error) {
        logFailure(error);
      }
    try {
      const parsedResponse = await readResponse(responseInput, applicationId);
      return 'why' in parsedResponse || !schema ? parsedResponse : { ...parsedResponse, isValid: false };
    } catch (error) {
      logFailure(error);
      return { why: 'parsing it takes too long' };
    }
  }

  async #countUse(use: Parameters<CallCredentials['countUse']>[0]): Promise<void> {
    await this.#parts.credentials
      .countUse(use)
      .catch(error =>
        this.#parts.log.warn('credential.use_not_counted', { credentialId: use.credentialId, reason: reason(error) }),
      );
  }

  /**
   * Counts a running call of the application. Returns a function that removes the call from the count. A second call of
   * that function has no effect.
   */
  #countCall(application: ApplicationId): () => void {
    const runningCount = this.#runningCallCounts.get(application) ?? 0;
    if (runningCount >= CONCURRENT_CALLS_MAX) throw tooManyCalls();
    this.#runningCallCounts.set(application, runningCount + 1);
    let isCounted = true;
    return () => {
      if (!isCounted) return;
      isCounted = false;
      const remainingCount = (this.#runningCallCounts.get(application) ?? 1) - 1;
      if (remainingCount > 0) this.#runningCallCounts.set(application, remainingCount);
      else this.#runningCallCounts.delete(application);
    };
  }
}

/**
 * Returns the beginning of an unsuccessful response. A response that cannot be parsed is not kept, because secrets
 * could not be removed from it.
 */
function excerptOf(parsedResponse: ResponseOutput): string {
  if ('why' in parsedResponse) return '';
  const { text } = parsedResponse.output;
  const fullText =
    typeof text === 'string' && Object.keys(parsedResponse.output).length === 1
      ? text
      : JSON.stringify(parsedResponse.output);
  return fullText === '{}' ? '' : fullText.slice(0, ERROR_CHARACTERS_MAX).toWellFormed();
}

const tooManyCalls = (): Error =>
  fault(
    'concurrency_limit',
    `This application already has ${CONCURRENT_CALLS_MAX} operation calls running, which is the limit.`,
    {
      advice: 'Wait until some of these calls have ended.',
      details: { limit: CONCURRENT_CALLS_MAX, used: CONCURRENT_CALLS_MAX, scope: 'application', name: 'operations' },
    },
  );
