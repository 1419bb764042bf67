import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Attributes, noTracer, parseTraceparent, type RawSpan, runOutsideSpans, Tracer } from './trace.ts';

interface RecordedSpan {
  readonly name: string;
  readonly parent: string | undefined;
  readonly attributes: Record<string, unknown>;
  readonly ends: unknown[];
}

/** A source of spans that records which spans were started. */
function recordingTracer(): { tracer: Tracer; spans: RecordedSpan[] } {
  const spans: RecordedSpan[] = [];
  const nameBySpan = new Map<RawSpan, string>();
  const tracer = new Tracer({
    begin: (name, _kind, parent, attributes) => {
      const recordedSpan: RecordedSpan = {
        name,
        parent: typeof parent === 'object' ? nameBySpan.get(parent) : parent,
        attributes: { ...attributes },
        ends: [],
      };
      spans.push(recordedSpan);
      const raw: RawSpan = {
        traceId: 'trace',
        set: (more: Attributes) => void Object.assign(recordedSpan.attributes, more),
        end: error => void recordedSpan.ends.push(error),
      };
      nameBySpan.set(raw, name);
      return raw;
    },
  });
  return { tracer, spans };
}

describe('a tracer', () => {
  it('nests spans in the current span, and passes shared attributes to later child spans', async () => {
    const { tracer, spans } = recordingTracer();
    const outer = tracer.begin('outer', { traceparent: 'from the caller', common: { request: 'r' } });
    await outer.runInside(async () => {
      await tracer.runInSpan('first', async () => {
        await tracer.runInSpan('inner', async () => {});
      });
      tracer.share({ session: 's' });
      await Promise.all([tracer.runInSpan('second', async () => {}), tracer.runInSpan('third', async () => {})]);
    });
    outer.end();
    assert.deepEqual(
      spans.map(({ name, parent, attributes }) => ({ name, parent, attributes })),
      [
        { name: 'outer', parent: 'from the caller', attributes: { request: 'r', session: 's' } },
        { name: 'first', parent: 'outer', attributes: { request: 'r' } },
        { name: 'inner', parent: 'first', attributes: { request: 'r' } },
        { name: 'second', parent: 'outer', attributes: { request: 'r', session: 's' } },
        { name: 'third', parent: 'outer', attributes: { request: 'r', session: 's' } },
      ],
    );
    for (const { ends } of spans) assert.deepEqual(ends, [undefined]);
  });

  it('ends a span with the error of its work, and rethrows the error', async () => {
    const { tracer, spans } = recordingTracer();
    const error = new Error('no');
    const work = tracer.begin('outer').runInside(() => tracer.runInSpan('part', () => Promise.reject(error)));
    await assert.rejects(work, error);
    assert.deepEqual(spans[1]?.ends, [error]);
  });

  it('ignores calls to end() on a span that has already ended', () => {
    const { tracer, spans } = recordingTracer();
    const span = tracer.begin('once');
    span.end();
    span.end(new Error('late'));
    assert.deepEqual(spans[0]?.ends, [undefined]);
  });

  it('records no child span without a current span', async () => {
    const { tracer, spans } = recordingTracer();
    assert.equal(await tracer.runInSpan('alone', async () => 7), 7);
    await tracer.begin('outer').runInside(() => runOutsideSpans(() => tracer.runInSpan('background', async () => {})));
    assert.deepEqual(
      spans.map(({ name }) => name),
      ['outer'],
    );
  });

  it('runs the work without recording spans if tracing is disabled', async () => {
    const span = noTracer.begin('nothing', { common: { request: 'r' } });
    assert.equal(await span.runInside(() => noTracer.runInSpan('part', async () => 7)), 7);
    noTracer.share({ session: 's' });
    span.end();
    assert.deepEqual([span.traceId, span.common], [undefined, {}]);
  });
});

describe('parseTraceparent', () => {
  const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
  const SPAN_ID = 'b7ad6b7169203331';

  it('parses the trace id, the span id and the flags', () => {
    assert.deepEqual(parseTraceparent(`00-${TRACE_ID}-${SPAN_ID}-01`), {
      traceId: TRACE_ID,
      spanId: SPAN_ID,
      flags: 1,
    });
    assert.deepEqual(parseTraceparent(` 00-${TRACE_ID}-${SPAN_ID}-00 `), {
      traceId: TRACE_ID,
      spanId: SPAN_ID,
      flags: 0,
    });
  });

  it('reads the known fields of a traceparent of a later version', () => {
    assert.deepEqual(parseTraceparent(`cc-${TRACE_ID}-${SPAN_ID}-01-more`), {
      traceId: TRACE_ID,
      spanId: SPAN_ID,
      flags: 1,
    });
  });

  for (const text of [
    '',
    'hello',
    `00-${TRACE_ID}-${SPAN_ID}`,
    `00-${TRACE_ID}-${SPAN_ID}-01-more`,
    `ff-${TRACE_ID}-${SPAN_ID}-01`,
    `00-${'0'.repeat(32)}-${SPAN_ID}-01`,
    `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
    `00-${TRACE_ID.toUpperCase()}-${SPAN_ID}-01`,
    `00-${TRACE_ID}-${SPAN_ID}-0`,
  ])
    it(`returns undefined for ${JSON.stringify(text)}`, () => assert.equal(parseTraceparent(text), undefined));
});
