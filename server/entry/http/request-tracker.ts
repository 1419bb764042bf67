// Keeps a record of each request: its id, start time, operation and caller. The record is used for log lines, metrics,
// spans and error bodies.
import type { FastifyRequest } from 'fastify';
import { Histogram, type Registry } from 'prom-client';
import { type OperationId, operation } from '../../../contract/operations.ts';
import type { Caller } from '../../domain/identity/caller.ts';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { isUuid, newRequestId } from '../../kit/ids.ts';
import type { Log, LogFields } from '../../kit/log.ts';
import { loopWatch } from '../../kit/loop-watch.ts';
import type { Span, Tracer } from '../../kit/trace.ts';

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const VALID_REQUEST_ID = /^[A-Za-z0-9._:-]{8,128}$/;

export interface TrackedRequest {
  readonly requestId: string;
  readonly operation: OperationId | undefined;
  readonly beganMs: number;
  /** The operation to which the time is attributed while the event loop is blocked. Absent for unknown paths. */
  readonly work?: { readonly what: string; applicationId?: string };
  readonly endWork?: () => void;
  /** Absent for unknown paths and for probes. */
  readonly span?: Span;
  caller?: Caller;
  /** The code of the error that was sent. */
  code?: string;
}

export class RequestTracker {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #trace: Tracer;
  readonly #durations: Histogram<'operation' | 'status'>;
  readonly #trackedRequests = new WeakMap<FastifyRequest, TrackedRequest>();

  constructor(clock: Clock, log: Log, trace: Tracer, registry: Registry) {
    this.#clock = clock;
    this.#log = log;
    this.#trace = trace;
    this.#durations = new Histogram({
      name: 'berth_http_request_duration_seconds',
      help: 'Duration of requests, from their first byte to the last byte of the response, by operation and status.',
      labelNames: ['operation', 'status'],
      buckets: BUCKETS_SECONDS,
      registers: [registry],
    });
  }

  /** The request id that the caller sent if it is well-formed, otherwise a new one. */
  requestId(header: string | string[] | undefined): string {
    if (typeof header === 'string' && VALID_REQUEST_ID.test(header)) return header;
    return newRequestId(this.#clock.now());
  }

  begin(request: FastifyRequest, id: OperationId | undefined): TrackedRequest {
    const work = id && { what: id };
    const trackedRequest: TrackedRequest = {
      ...(work ? { work, endWork: loopWatch.begin(work, countsAsUse(id)) } : {}),
      requestId: request.id,
      operation: id,
      beganMs: this.#clock.monotonicMs(),
      ...(id && operation(id).tag !== 'Service' ? { span: this.#spanOf(id, request) } : {}),
    };
    this.#trackedRequests.set(request, trackedRequest);
    if (id) this.#logStage(id, 'begin', { requestId: trackedRequest.requestId, method: request.method });
    return trackedRequest;
  }

  recordOf(request: FastifyRequest): TrackedRequest {
    return this.#trackedRequests.get(request) ?? this.begin(request, undefined);
  }

  /** Runs the handler within the span of the request. */
  runInSpan<T>(request: FastifyRequest, work: () => T): T {
    const { span, caller } = this.recordOf(request);
    if (!span) return this.attribute(request, work);
    if (caller?.kind === 'agentKey') span.share({ 'berth.application_id': caller.applicationId });
    return this.attribute(request, () => span.runInside(work));
  }

  /** Attributes the synchronous part of the work to this request, in case it blocks the event loop. */
  attribute<T>(request: FastifyRequest, work: () => T): T {
    const { work: requestWork, operation: id, caller } = this.recordOf(request);
    if (!requestWork) return work();
    if (caller?.kind === 'agentKey') requestWork.applicationId = caller.applicationId;
    loopWatch.enter(requestWork, countsAsUse(id));
    try {
      return work();
    } finally {
      loopWatch.leave();
    }
  }

  end(request: FastifyRequest, status: number, isDelivered: boolean): void {
    const trackedRequest = this.recordOf(request);
    trackedRequest.endWork?.();
    endSpan(trackedRequest, status);
    const ms = this.#clock.monotonicMs() - trackedRequest.beganMs;
    this.#durations.observe({ operation: trackedRequest.operation ?? 'none', status: String(status) }, ms / 1000);
    if (trackedRequest.operation)
      this.#logStage(trackedRequest.operation, 'end', endFields(trackedRequest, status, ms, isDelivered));
  }

  #spanOf(id: OperationId, request: FastifyRequest): Span {
    const { traceparent } = request.headers;
    const span = this.#trace.begin(id, {
      kind: 'server',
      ...(typeof traceparent === 'string' ? { traceparent } : {}),
      common: { 'berth.request_id': request.id, ...sessionAttributes(id, request) },
    });
    span.set({ 'http.request.method': request.method, 'http.route': operation(id).path });
    return span;
  }

  /**
   * Logs the beginning or end of a request. Probes and scrapes run every few seconds, so they are logged at debug
   * level.
   */
  #logStage(id: OperationId, stage: 'begin' | 'end', fields: LogFields): void {
    if (operation(id).tag === 'Service') this.#log.debug(`${id}.${stage}`, fields);
    else this.#log.info(`${id}.${stage}`, fields);
  }

  /** Logs an error that is not a refusal. */
  logFailure(request: FastifyRequest, error: unknown): void {
    const { operation: id, requestId } = this.recordOf(request);
    const stack = error instanceof Error ? error.stack : undefined;
    this.#log.error('http.failure', { operation: id, requestId, error: reason(error), stack });
  }
}

/** The session id in the path, if any. */
function sessionAttributes(id: OperationId, { params }: FastifyRequest): { 'berth.session_id'?: string } {
  if (!operation(id).path.includes('/sessions/{id}')) return {};
  const sessionId = Object.entries(Object(params)).find(([name]) => name === 'id')?.[1];
  return isUuid(String(sessionId)) ? { 'berth.session_id': String(sessionId) } : {};
}

/** Only 5xx responses mark the span as failed, because refusals are normal responses. */
function endSpan({ span, code }: TrackedRequest, status: number): void {
  span?.set({ 'http.response.status_code': status, ...(code ? { 'berth.error_code': code } : {}) });
  span?.end(status >= 500 ? new Error(`responded with ${status} ${code ?? ''}`.trim()) : undefined);
}

const endFields = (
  { requestId, caller, code, span }: TrackedRequest,
  status: number,
  ms: number,
  isDelivered: boolean,
): LogFields => ({
  requestId,
  ...(span?.traceId ? { traceId: span.traceId } : {}),
  status,
  durationMs: Math.round(ms * 10) / 10,
  ...(caller?.kind === 'agentKey' ? { applicationId: caller.applicationId, keyId: caller.keyId } : {}),
  ...(caller?.kind === 'account'
    ? { accountId: caller.accountId, via: caller.via.kind, credentialId: caller.via.id }
    : {}),
  ...(caller?.kind === 'consumer' ? { applicationId: caller.applicationId, consumerId: caller.consumerId } : {}),
  ...(code ? { code } : {}),
  ...(isDelivered ? {} : { delivered: isDelivered }),
});

/** Requests that read the state of the process do not count as a use of it. */
const countsAsUse = (id: OperationId | undefined): boolean => id !== undefined && operation(id).tag !== 'Service';
