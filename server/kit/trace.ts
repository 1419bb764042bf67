// Spans: how long the parts of an answer took, and whose parts they are. Who wants them sent somewhere gives a source
// (server/otel-trace.ts); without one, all of this is next to nothing. The span that is under way follows the calls.
import { AsyncLocalStorage } from 'node:async_hooks';

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** One span of a source. */
export interface RawSpan {
  readonly traceId: string;
  set(attributes: Attributes): void;
  end(error?: unknown): void;
}

export interface SpanSource {
  /** `parent`: a span of this source, or a caller's `traceparent`, which may be anything. */
  begin(name: string, kind: SpanKind, parent: RawSpan | string | undefined, attributes: Attributes): RawSpan;
}

/** `server`: somebody outside waits for it. */
export type SpanKind = 'server' | 'internal';

export interface SpanOptions {
  readonly kind?: SpanKind;
  /** The caller's header. Absent: the span that is under way. */
  readonly traceparent?: string | undefined;
  /** On this span and on every one that begins inside it. */
  readonly common?: Attributes;
}

const underWay = new AsyncLocalStorage<Span>();

/** Work that was begun by a request and does not belong to it. */
export const outsideSpans = <T>(work: () => T): T => underWay.exit(work);

export class Span {
  readonly raw: RawSpan | undefined;
  #common: Attributes;
  #isOver = false;

  constructor(raw: RawSpan | undefined, common: Attributes) {
    this.raw = raw;
    this.#common = common;
  }

  get common(): Attributes {
    return this.#common;
  }

  get traceId(): string | undefined {
    return this.raw?.traceId;
  }

  set(attributes: Attributes): void {
    this.raw?.set(attributes);
  }

  /** On this span, and on those that begin inside it from now on. */
  share(attributes: Attributes): void {
    this.#common = { ...this.#common, ...attributes };
    this.set(attributes);
  }

  /** The first end counts. */
  end(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.raw?.end(error);
  }

  /** What `work` begins is part of this span. */
  around<T>(work: () => T): T {
    return this.raw ? underWay.run(this, work) : work();
  }
}

const NO_SPAN = new Span(undefined, {});

export class Tracer {
  readonly #source: SpanSource | undefined;

  constructor(source?: SpanSource) {
    this.#source = source;
  }

  /** A span that the caller ends. */
  begin(name: string, { kind = 'internal', traceparent, common = {} }: SpanOptions = {}): Span {
    if (!this.#source) return NO_SPAN;
    const outer = underWay.getStore();
    const attributes = { ...outer?.common, ...common };
    return new Span(this.#source.begin(name, kind, traceparent ?? outer?.raw, attributes), attributes);
  }

  /** The work as a span inside the one that is under way; where none is, only the work. */
  async during<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (!underWay.getStore()) return work();
    const span = this.begin(name);
    try {
      const result = await span.around(work);
      span.end();
      return result;
    } catch (error) {
      span.end(error);
      throw error;
    }
  }

  /** Says something about the span that is under way, and about those that begin inside it. */
  share(attributes: Attributes): void {
    underWay.getStore()?.share(attributes);
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

/** W3C Trace Context; undefined for what is none, and then the trace begins here. */
export function parseTraceparent(text: string): Traceparent | undefined {
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(text.trim()) ?? [];
  if (!version || !traceId || !spanId || !flags || version === 'ff' || (version === '00' && more)) return undefined;
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}
