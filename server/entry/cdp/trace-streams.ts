// The streams in which clients read their traces. Chromium writes the events first, and behind them its command line, the
// memory and the kernel of the host: that end is left out. One of these for each browser, whose streams all clients may read.

import type { Browser, Verdict } from '../../domain/sessions/machinery.ts';
import { parseJson } from '../../kit/foreign.ts';
import type { JsonObject } from '../../kit/json.ts';

/** Of one browser, until they are closed. */
const STREAMS_MAX = 20;
const READ_BYTES_MAX = 1024 ** 2;
/** What stands between the last event and the rest. */
const END_OF_EVENTS = Buffer.from('],"metadata":');
const END_OF_TRACE = Buffer.from(']}');
const COMPLETE = Buffer.from('{"method":"Tracing.tracingComplete",');
const NO_OFFSET = 'IO.read is refused: a trace is read from its beginning, without an offset.';
const PASS: Verdict = { pass: true };

type OnAnswer = NonNullable<Extract<Verdict, { pass: true }>['onAnswer']>;

export class TraceStreams {
  static readonly #ofBrowsers = new WeakMap<Browser, TraceStreams>();
  /** By the handle of the stream. */
  readonly #open = new Map<string, TraceText>();
  #hasBegun = false;

  static of(browser: Browser): TraceStreams {
    const streams = TraceStreams.#ofBrowsers.get(browser) ?? new TraceStreams();
    TraceStreams.#ofBrowsers.set(browser, streams);
    return streams;
  }

  /** `Tracing.start`: a stream must be one that can be read on its way. */
  start(params: JsonObject): Verdict {
    const { transferMode, streamFormat, streamCompression, perfettoConfig, tracingBackend } = params;
    this.#hasBegun = true;
    if (transferMode !== 'ReturnAsStream' && perfettoConfig === undefined) return PASS;
    const isPlain =
      perfettoConfig === undefined &&
      (streamFormat === undefined || streamFormat === 'json') &&
      (streamCompression === undefined || streamCompression === 'none') &&
      (tracingBackend === undefined || tracingBackend === 'auto' || tracingBackend === 'chrome');
    if (!isPlain)
      return {
        refuse:
          'Tracing.start is refused for this kind of stream, which reveals information about the host. Omit streamFormat, streamCompression, perfettoConfig and tracingBackend to get a JSON stream.',
      };
    if (this.#open.size < STREAMS_MAX) return PASS;
    return {
      refuse: `The session already has ${STREAMS_MAX} open traces, which is the limit. Close one with IO.close.`,
    };
  }

  /** An event of the browser on its way to a client, who cannot name the stream before it. */
  heard(message: Buffer): void {
    if (!this.#hasBegun || !message.subarray(0, COMPLETE.length).equals(COMPLETE)) return;
    const { params }: { params?: unknown } = Object(parseJson(message));
    const { stream }: { stream?: unknown } = Object(params);
    if (typeof stream === 'string') this.#open.set(stream, new TraceText());
  }

  /** `IO.read`, of a trace or of anything else: which it is, is known when it is answered. */
  read(params: JsonObject): Verdict {
    if (!this.#hasBegun) return PASS;
    const { handle, offset, size } = params;
    const traceOf = (): TraceText | undefined => (typeof handle === 'string' ? this.#open.get(handle) : undefined);
    if (offset !== undefined && traceOf()) return { refuse: NO_OFFSET };
    const onAnswer: OnAnswer = answer => {
      const trace = traceOf();
      const { result } = answer;
      if (!trace || !result) return answer;
      // It was asked for before it was there. Where the next piece begins is not known any more.
      if (offset !== undefined) trace.end();
      const data = typeof result.data === 'string' ? result.data : '';
      const bytes = trace.next(
        Buffer.from(data, result.base64Encoded === true ? 'base64' : 'utf8'),
        result.eof === true,
      );
      return { ...answer, result: { ...result, data: bytes.toString('base64'), base64Encoded: true } };
    };
    const most = typeof size === 'number' && size > 0 && size < READ_BYTES_MAX ? size : READ_BYTES_MAX;
    return { rewrite: { ...params, size: most }, onAnswer };
  }

  /** `IO.close`: when it is answered nothing more can be read of it. */
  close({ handle }: JsonObject): Verdict {
    if (typeof handle !== 'string' || !this.#open.has(handle)) return PASS;
    const onAnswer: OnAnswer = answer => {
      if (!answer.error) this.#open.delete(handle);
      return answer;
    };
    return { pass: true, onAnswer };
  }
}

/** The text of one trace, piece by piece, up to the end of its events. */
export class TraceText {
  /** May be the beginning of the end. */
  #held: Buffer = Buffer.alloc(0);
  #isOver = false;

  /** Nothing more is told of it. */
  end(): void {
    this.#isOver = true;
  }

  next(piece: Buffer, isLast: boolean): Buffer {
    if (this.#isOver) return Buffer.alloc(0);
    const bytes = Buffer.concat([this.#held, piece]);
    const end = bytes.indexOf(END_OF_EVENTS);
    this.#isOver = end >= 0 || isLast;
    if (end >= 0) return Buffer.concat([bytes.subarray(0, end), END_OF_TRACE]);
    const passed = isLast ? bytes.length : Math.max(0, bytes.length - END_OF_EVENTS.length + 1);
    this.#held = bytes.subarray(passed);
    return bytes.subarray(0, passed);
  }
}
