// Streams from which clients read traces. After the events, Chromium writes its command line and data about the memory
// and kernel of the host. That part is removed. There is one instance per browser, because all clients may read its
// streams.
import type { Browser, Verdict } from '../../domain/sessions/browser-host.ts';
import { parseJson } from '../../kit/foreign.ts';
import type { JsonObject } from '../../kit/json.ts';

/** The maximum number of open traces per browser. */
const STREAMS_MAX = 20;
const READ_BYTES_MAX = 1024 ** 2;
/** The text between the last event and the metadata. */
const END_OF_EVENTS = Buffer.from('],"metadata":');
const END_OF_TRACE = Buffer.from(']}');
const COMPLETE_PREFIX = Buffer.from('{"method":"Tracing.tracingComplete",');
const OFFSET_REFUSAL = 'IO.read is refused: a trace is read from its beginning, without an offset.';
const PASS: Verdict = { pass: true };

type OnResponse = NonNullable<Extract<Verdict, { pass: true }>['onResponse']>;

export class TraceStreams {
  static readonly #byBrowser = new WeakMap<Browser, TraceStreams>();
  /** Open traces by stream handle. */
  readonly #openTraces = new Map<string, TraceText>();
  #hasBegun = false;

  static of(browser: Browser): TraceStreams {
    const streams = TraceStreams.#byBrowser.get(browser) ?? new TraceStreams();
    TraceStreams.#byBrowser.set(browser, streams);
    return streams;
  }

  /** Handles `Tracing.start`: the stream must have a format that can be cut while it is read. */
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
    if (this.#openTraces.size < STREAMS_MAX) return PASS;
    return {
      refuse: `The session already has ${STREAMS_MAX} open traces, which is the limit. Close one with IO.close.`,
    };
  }

  /**
   * Called with every event before the event is sent to a client, so that the stream is known before the client can
   * read it.
   */
  observe(message: Buffer): void {
    if (!this.#hasBegun || !message.subarray(0, COMPLETE_PREFIX.length).equals(COMPLETE_PREFIX)) return;
    const { params }: { params?: unknown } = Object(parseJson(message));
    const { stream }: { stream?: unknown } = Object(params);
    if (typeof stream === 'string') this.#openTraces.set(stream, new TraceText());
  }

  /** Handles `IO.read` of any stream. Whether the stream is a trace is checked when the response arrives. */
  read(params: JsonObject): Verdict {
    if (!this.#hasBegun) return PASS;
    const { handle, offset, size } = params;
    const findTrace = (): TraceText | undefined =>
      typeof handle === 'string' ? this.#openTraces.get(handle) : undefined;
    if (offset !== undefined && findTrace()) return { refuse: OFFSET_REFUSAL };
    const onResponse: OnResponse = received => {
      const trace = findTrace();
      const { result } = received;
      if (!trace || !result) return received;
      // This read has an offset, and was sent before the stream was known to be a trace. Its position in the trace is
      // unknown, so the trace ends here for the client.
      if (offset !== undefined) trace.end();
      const data = typeof result.data === 'string' ? result.data : '';
      const bytes = trace.next(
        Buffer.from(data, result.base64Encoded === true ? 'base64' : 'utf8'),
        result.eof === true,
      );
      return { ...received, result: { ...result, data: bytes.toString('base64'), base64Encoded: true } };
    };
    const maxBytes = typeof size === 'number' && size > 0 && size < READ_BYTES_MAX ? size : READ_BYTES_MAX;
    return { rewrite: { ...params, size: maxBytes }, onResponse };
  }

  /** Handles `IO.close`: after the response, the stream can no longer be read. */
  close({ handle }: JsonObject): Verdict {
    if (typeof handle !== 'string' || !this.#openTraces.has(handle)) return PASS;
    const onResponse: OnResponse = received => {
      if (!received.error) this.#openTraces.delete(handle);
      return received;
    };
    return { pass: true, onResponse };
  }
}

/** The text of one trace, in pieces, up to the end of its events. */
export class TraceText {
  /** Text that may be the beginning of END_OF_EVENTS. */
  #heldText: Buffer = Buffer.alloc(0);
  #hasEnded = false;

  /** Drops all further text. */
  end(): void {
    this.#hasEnded = true;
  }

  next(piece: Buffer, isLast: boolean): Buffer {
    if (this.#hasEnded) return Buffer.alloc(0);
    const bytes = Buffer.concat([this.#heldText, piece]);
    const end = bytes.indexOf(END_OF_EVENTS);
    this.#hasEnded = end >= 0 || isLast;
    if (end >= 0) return Buffer.concat([bytes.subarray(0, end), END_OF_TRACE]);
    const passedBytes = isLast ? bytes.length : Math.max(0, bytes.length - END_OF_EVENTS.length + 1);
    this.#heldText = bytes.subarray(passedBytes);
    return bytes.subarray(0, passedBytes);
  }
}
