import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Browser, Verdict } from '../../domain/sessions/browser-host.ts';
import type { JsonObject } from '../../kit/json.ts';
import { TraceStreams, TraceText } from './trace-streams.ts';

const EVENTS = '{"traceEvents":[{"args":{"metadata":"é"},"name":"a"}';
const TRACE = `${EVENTS}],"metadata":\n{"command_line":"chromium --secret"}}`;

test('truncates a trace after its events, regardless of the chunk size', () => {
  for (let size = 1; size <= TRACE.length; size++) {
    const trace = new TraceText();
    const traceBytes = Buffer.from(TRACE);
    const pieces: Buffer[] = [];
    for (let at = 0; at < traceBytes.length; at += size)
      pieces.push(trace.next(traceBytes.subarray(at, at + size), at + size >= traceBytes.length));
    assert.equal(Buffer.concat(pieces).toString(), `${EVENTS}]}`, `${size} bytes at once`);
  }
});

test('passes a trace without metadata unchanged', () => {
  const trace = new TraceText();
  assert.equal(`${trace.next(Buffer.from(EVENTS), false)}${trace.next(Buffer.from(']}'), true)}`, `${EVENTS}]}`);
});

const word = (verdict: Verdict): string => Object.keys(verdict)[0] ?? '';

test('refuses stream formats that cannot be truncated', () => {
  const streams = TraceStreams.of({} as Browser);
  const start = (params: JsonObject): string => word(streams.start(params));
  assert.equal(word(streams.read({ handle: '1', offset: 3 })), 'pass', 'reads are not checked before the first trace');
  assert.equal(start({}), 'pass');
  assert.equal(start({ transferMode: 'ReturnAsStream' }), 'pass');
  assert.equal(start({ transferMode: 'ReturnAsStream', streamFormat: 'json', streamCompression: 'none' }), 'pass');
  for (const more of [
    { streamFormat: 'proto' },
    { streamCompression: 'gzip' },
    { perfettoConfig: 'CgA=' },
    { tracingBackend: 'system' },
    { streamFormat: { toString: 1 } },
  ])
    assert.equal(start({ transferMode: 'ReturnAsStream', ...more }), 'refuse');
  assert.equal(start({ perfettoConfig: 'CgA=' }), 'refuse');
});

test('removes the metadata after the events of a trace, leaves other streams unchanged, and refuses to read a trace from an offset', async () => {
  const browser = {} as Browser;
  const streams = TraceStreams.of(browser);
  streams.start({ transferMode: 'ReturnAsStream' });
  streams.observe(Buffer.from('{"method":"Tracing.tracingComplete","params":{"stream":"7"},"sessionId":"x"}'));
  const readData = async (verdict: Verdict): Promise<unknown> => {
    assert.ok('rewrite' in verdict && verdict.onResponse);
    assert.ok(Number(verdict.rewrite.size) <= 1024 ** 2);
    const { result } = await verdict.onResponse({ id: 1, result: { data: TRACE, base64Encoded: false, eof: true } });
    return Buffer.from(String(result?.data), result?.base64Encoded === true ? 'base64' : 'utf8').toString();
  };
  const read = (params: JsonObject): Verdict => TraceStreams.of(browser).read(params);
  assert.equal(word(read({ handle: '7', offset: 60 })), 'refuse');
  assert.equal(await readData(read({ handle: '7', size: 10 ** 9 })), `${EVENTS}]}`);
  assert.equal(await readData(read({ handle: '8' })), TRACE);
  const earlyVerdict = read({ handle: '9', offset: 60 });
  streams.observe(Buffer.from('{"method":"Tracing.tracingComplete","params":{"stream":"9"}}'));
  assert.equal(await readData(earlyVerdict), '', 'read before the trace was known');
  assert.equal(await readData(read({ handle: '9' })), '');
});
