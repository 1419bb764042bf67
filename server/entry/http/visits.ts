// One visit a request: its id, when it began, which operation it is, who asks. Log lines, metrics and error bodies read it.
import type { FastifyRequest } from 'fastify';
import { Histogram, type Registry } from 'prom-client';
import { type OperationId, operation } from '../../../contract/operations.ts';
import type { Caller } from '../../domain/identity/caller.ts';
import type { Clock } from '../../kit/clock.ts';
import { reason } from '../../kit/fault.ts';
import { newRequestId } from '../../kit/ids.ts';
import type { Log, LogFields } from '../../kit/log.ts';

const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const SANE_REQUEST_ID = /^[A-Za-z0-9._:-]{8,128}$/;

export interface Visit {
  readonly requestId: string;
  readonly operation: OperationId | undefined;
  readonly beganMs: number;
  caller?: Caller;
  /** Code of the error that was answered. */
  code?: string;
}

export class Visits {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #seconds: Histogram<'operation' | 'status'>;
  readonly #open = new WeakMap<FastifyRequest, Visit>();

  constructor(clock: Clock, log: Log, registry: Registry) {
    this.#clock = clock;
    this.#log = log;
    this.#seconds = new Histogram({
      name: 'berth_http_request_duration_seconds',
      help: 'Time from the first byte of a request to the last of its answer, by operation and status.',
      labelNames: ['operation', 'status'],
      buckets: BUCKETS_SECONDS,
      registers: [registry],
    });
  }

  /** The caller's own id for the request when it is a sane one, otherwise a new one. */
  requestId(asked: string | string[] | undefined): string {
    if (typeof asked === 'string' && SANE_REQUEST_ID.test(asked)) return asked;
    return newRequestId(this.#clock.now());
  }

  begin(request: FastifyRequest, id: OperationId | undefined): Visit {
    const visit: Visit = { requestId: request.id, operation: id, beganMs: this.#clock.monotonicMs() };
    this.#open.set(request, visit);
    if (id) this.#line(id, 'begin', { requestId: visit.requestId, method: request.method });
    return visit;
  }

  of(request: FastifyRequest): Visit {
    return this.#open.get(request) ?? this.begin(request, undefined);
  }

  end(request: FastifyRequest, status: number, delivered: boolean): void {
    const visit = this.of(request);
    const ms = this.#clock.monotonicMs() - visit.beganMs;
    this.#seconds.observe({ operation: visit.operation ?? 'none', status: String(status) }, ms / 1000);
    if (visit.operation) this.#line(visit.operation, 'end', endFields(visit, status, ms, delivered));
  }

  /** Probes and scrapes come every few seconds for ever; they are for those who ask for them. */
  #line(id: OperationId, when: 'begin' | 'end', fields: LogFields): void {
    if (operation(id).tag === 'Service') this.#log.debug(`${id}.${when}`, fields);
    else this.#log.info(`${id}.${when}`, fields);
  }

  /** Something that is not a refusal. */
  broke(request: FastifyRequest, error: unknown): void {
    const { operation: id, requestId } = this.of(request);
    const stack = error instanceof Error ? error.stack : undefined;
    this.#log.error('http.failure', { operation: id, requestId, error: reason(error), stack });
  }
}

const endFields = ({ requestId, caller, code }: Visit, status: number, ms: number, delivered: boolean): LogFields => ({
  requestId,
  status,
  durationMs: Math.round(ms * 10) / 10,
  ...(caller?.kind === 'agentKey' ? { applicationId: caller.applicationId, keyId: caller.keyId } : {}),
  ...(caller?.kind === 'account' ? { accountId: caller.accountId, tokenId: caller.tokenId } : {}),
  ...(code ? { code } : {}),
  ...(delivered ? {} : { delivered }),
});
