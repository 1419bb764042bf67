// Spans record the duration of the parts of a request, with attributes such as the application. A source
// (server/otel-trace.ts) exports the spans; without a source, they cost almost nothing. The current span follows
// asynchronous calls.
import { AsyncLocalStorage } from 'node:async_hooks';

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** One span of a source. */
export interface RawSpan {
  readonly traceId: string;
  set(attributes: Attributes): void;
  end(error?: unknown): void;
}

export interface SpanSource {
  /**
   * `parent`: a span of this source, or the `traceparent` of a caller, which may be invalid. Undefined: the span begins
   * a new trace.
   */
  begin(name: string, kind: SpanKind, parent: RawSpan | string | undefined, attributes: Attributes): RawSpan;
}

/** `server`: the span of a request from a caller. `internal`: any other span. */
export type SpanKind = 'server' | 'internal';

export interface SpanOptions {
  readonly kind?: SpanKind;
  /** The caller's `traceparent`. Absent: the current span is the parent. */
  readonly traceparent?: string | undefined;
  /** Attributes that are set on this span and on every span that begins inside it. */
  readonly common?: Attributes;
}

const activeSpan = new AsyncLocalStorage<Span>();

/** Runs work that is started by a request but is not part of the request. */
export const runOutsideSpans = <T>(work: () => T): T => activeSpan.exit(work);

export class Span {
  readonly raw: RawSpan | undefined;
  #commonAttributes: Attributes;
  #isOver = false;

  constructor(raw: RawSpan | undefined, commonAttributes: Attributes) {
    this.raw = raw;
    this.#commonAttributes = commonAttributes;
  }

  get common(): Attributes {
    return this.#commonAttributes;
  }

  get traceId(): string | undefined {
    return this.raw?.traceId;
  }

  set(attributes: Attributes): void {
    this.raw?.set(attributes);
  }

  /** Sets attributes on this span, and on every span that later begins inside it. */
  share(attributes: Attributes): void {
    this.#commonAttributes = { ...this.#commonAttributes, ...attributes };
    this.set(attributes);
  }

  /** Only the first call has an effect. */
  end(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.raw?.end(error);
  }

  /** Runs `work`. The spans that it begins are inside this span. */
  runInside<T>(work: () => T): T {
    return this.raw ? activeSpan.run(this, work) : work();
  }
}

const NO_SPAN = new Span(undefined, {});

export class Tracer {
  readonly #source: SpanSource | undefined;

  constructor(source?: SpanSource) {
    this.#source = source;
  }

  /** Begins a span that the caller must end. */
  begin(name: string, { kind = 'internal', traceparent, common = {} }: SpanOptions = {}): Span {
    if (!this.#source) return NO_SPAN;
    const outerSpan = activeSpan.getStore();
    const attributes = { ...outerSpan?.common, ...common };
    return new Span(this.#source.begin(name, kind, traceparent ?? outerSpan?.raw, attributes), attributes);
  }

  /** Runs the work in a span inside the current span. Without a current span, runs the work without a span. */
  async runInSpan<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (!activeSpan.getStore()) return work();
    const span = this.begin(name);
    try {
      const result = await span.runInside(work);
      span.end();
      return result;
    } catch (error) {
      span.end(error);
      throw error;
    }
  }

  /** Sets attributes on the current span, and on every span that later begins inside it. */
  share(attributes: Attributes): void {
    activeSpan.getStore()?.share(attributes);
  }
}

export const noTracer = new Tracer();

export interface Traceparent {
  readonly traceId: string;
  readonly spanId: string;
  readonly flags: number;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const ZEROS = /^0+$/;

/**
 * Parses the `traceparent` header of W3C Trace Context. Returns undefined if it is invalid. The request then begins a
 * new trace.
 */
export function parseTraceparent(text: string): Traceparent | undefined {
  const [, version, traceId, spanId, flags, suffix] = TRACEPARENT.exec(text.trim()) ?? [];
  if (!version || !traceId || !spanId || !flags || version === 'ff' || (version === '00' && suffix)) return undefined;
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}
