// Exports spans with OpenTelemetry, as OTLP over HTTP in JSON. Loaded only if an endpoint is configured. If the
// collector is unavailable, only spans are lost.
import {
  type Context,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Clock } from './kit/clock.ts';
import { isFault, reason } from './kit/fault.ts';
import type { Log } from './kit/log.ts';
import type { Runtime } from './kit/runtime.ts';
import type { Closeable } from './kit/scope.ts';
import type { Secret } from './kit/secret.ts';
import { type Attributes, parseTraceparent, type RawSpan, type SpanSource } from './kit/trace.ts';
import { withTimeout } from './kit/wait.ts';

const SEND_INTERVAL_MS = 1_000;
const SEND_TIMEOUT_MS = 10_000;
/** The maximum number of spans that wait to be sent. Further spans are dropped. */
const WAITING_SPANS_MAX = 2_048;
const BATCH_SPANS_MAX = 256;
const LAST_SEND_TIMEOUT_MS = 3_000;
/** The minimum time between two log entries about an unreachable collector. */
const WARN_INTERVAL_MS = 60_000;
const ERROR_CHARACTERS_MAX = 500;

export interface OtelOptions extends Pick<Runtime, 'clock' | 'log'> {
  /** The origin and path of the collector, without `/v1/traces`. */
  readonly endpoint: string;
  /** `name=value` pairs separated by commas, percent-encoded, as OpenTelemetry defines them. */
  readonly headers?: Secret;
  readonly version: string;
  /** Distinguishes this process from other processes of the same service. */
  readonly instance: string;
}

export function openOtel(options: OtelOptions): SpanSource & Closeable {
  logExportErrors(options.log, options.clock);
  const exporter = new OTLPTraceExporter({
    url: `${options.endpoint}/v1/traces`,
    headers: headersOf(options.headers),
    timeoutMillis: SEND_TIMEOUT_MS,
  });
  // The 3.x constructors take objects. With the arguments of 2.x they silently export nothing.
  const processor = new BatchSpanProcessor({
    exporter,
    scheduledDelayMillis: SEND_INTERVAL_MS,
    exportTimeoutMillis: SEND_TIMEOUT_MS,
    maxQueueSize: WAITING_SPANS_MAX,
    maxExportBatchSize: BATCH_SPANS_MAX,
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': 'berth',
      'service.version': options.version,
      'service.instance.id': options.instance,
    }),
    spanProcessors: [processor],
  });
  const tracer = provider.getTracer('berth', options.version);
  return {
    begin: (name, kind, parent, attributes) => {
      const spanOptions = { kind: kind === 'server' ? SpanKind.SERVER : SpanKind.INTERNAL, attributes };
      return new OtelSpan(tracer.startSpan(name, spanOptions, contextOf(parent)));
    },
    close: () => closeWithTimeout(provider, options.log),
  };
}

class OtelSpan implements RawSpan {
  readonly span: Span;

  constructor(span: Span) {
    this.span = span;
  }

  get traceId(): string {
    return this.span.spanContext().traceId;
  }

  set(attributes: Attributes): void {
    this.span.setAttributes({ ...attributes });
  }

  end(error?: unknown): void {
    if (error !== undefined) {
      const type = isFault(error) ? error.code : error instanceof Error ? error.name : 'error';
      this.span.setAttribute('error.type', type);
      this.span.setStatus({ code: SpanStatusCode.ERROR, message: reason(error).slice(0, ERROR_CHARACTERS_MAX) });
    }
    this.span.end();
  }
}

/** If the caller does not record its trace, this server's spans in that trace are not recorded either. */
function contextOf(parent: RawSpan | string | undefined): Context {
  if (parent instanceof OtelSpan) return trace.setSpan(ROOT_CONTEXT, parent.span);
  const remoteParent = typeof parent === 'string' ? parseTraceparent(parent) : undefined;
  if (!remoteParent) return ROOT_CONTEXT;
  const { traceId, spanId, flags: traceFlags } = remoteParent;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

function headersOf(headers: Secret | undefined): Record<string, string> {
  const pairs = headers?.reveal().split(',') ?? [];
  return Object.fromEntries(
    pairs.flatMap(pair => {
      const [name = '', ...value] = pair.split('=');
      return name.trim() === '' ? [] : [[name.trim(), decodeURIComponent(value.join('=').trim())]];
    }),
  );
}

function logExportErrors(log: Log, clock: Clock): void {
  let lastWarnedMs = Number.NEGATIVE_INFINITY;
  const warnRarely = (message: string): void => {
    if (clock.monotonicMs() - lastWarnedMs < WARN_INTERVAL_MS) return;
    lastWarnedMs = clock.monotonicMs();
    log.warn('trace.not_sent', { reason: message.slice(0, ERROR_CHARACTERS_MAX) });
  };
  const ignore = (): void => {};
  const logger = { error: warnRarely, warn: warnRarely, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

async function closeWithTimeout(provider: TracerProvider, log: Log): Promise<void> {
  try {
    await withTimeout(LAST_SEND_TIMEOUT_MS, 'the last spans to be sent', () => provider.shutdown());
  } catch (error) {
    log.warn('trace.not_sent', { reason: reason(error) });
  }
}
