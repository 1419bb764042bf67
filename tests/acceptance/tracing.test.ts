// Spans as a collector receives them. The spans continue the caller's trace and cover the parts of a create.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import { CdpClient, expectUpgradeRefusal } from '../harness/cdp.ts';
import { LIGHT_ENGINE } from '../harness/engine.ts';
import { startOtlpReceiver } from '../harness/otlp-receiver.ts';
import { type CreatedSession, startServer } from '../harness/server.ts';
import { eventually } from '../harness/until.ts';

const SERVER_KIND = 2;
const INTERNAL_KIND = 1;
const FAILED_STATUS = 2;

const receiver = await startOtlpReceiver();
const server = await startServer({
  env: {
    BERTH_ENGINE: LIGHT_ENGINE,
    BERTH_SLOTS: '4',
    BERTH_WARM: '1',
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=berth,authorization=Basic%20abc',
  },
});

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const CALLER_SPAN_ID = 'b7ad6b7169203331';
const create = (body: object, headers: Record<string, string> = {}) =>
  server.api<CreatedSession>('POST', '/v1/browsers/sessions', { body, headers });

test("the span of a create is a child of the caller's span, and its child spans contain the session id and the request id", async () => {
  const { status, body: session } = await create(
    { browserSettings: { locale: 'de-DE' } },
    { traceparent: `00-${TRACE_ID}-${CALLER_SPAN_ID}-01`, 'x-request-id': 'request-of-the-test' },
  );
  assert.equal(status, 201);
  const span = await receiver.span('createSession', ({ traceId }) => traceId === TRACE_ID);
  assert.equal(span.parentSpanId, CALLER_SPAN_ID);
  assert.equal(span.kind, SERVER_KIND);
  assert.notEqual(span.status, FAILED_STATUS);
  const ids = {
    'berth.request_id': 'request-of-the-test',
    'berth.session_id': session.id,
    'berth.application_id': server.applicationId,
  };
  assert.deepEqual(span.attributes, {
    ...ids,
    'http.request.method': 'POST',
    'http.route': '/v1/browsers/sessions',
    'http.response.status_code': 201,
  });
  assert.equal(span.resource['service.name'], 'berth');
  for (const name of ['session.place', 'session.launch', 'browser.take', 'session.run']) {
    const childSpan = await receiver.span(name, ({ traceId }) => traceId === TRACE_ID);
    assert.equal(childSpan.parentSpanId, span.spanId, name);
    assert.equal(childSpan.kind, INTERNAL_KIND);
    assert.deepEqual(childSpan.attributes, ids);
    assert.ok(childSpan.beganNs >= span.beganNs && childSpan.endedNs <= span.endedNs, `${name} lies inside`);
  }
  const launchSpan = await receiver.span('session.launch', ({ traceId }) => traceId === TRACE_ID);
  const meetSpan = await receiver.span('browser.meet', ({ traceId }) => traceId === TRACE_ID);
  assert.equal(meetSpan.parentSpanId, launchSpan.spanId);
  await server.release(session.id);
});

test('creating a session with a warm browser records a session.claim span', async () => {
  // One warm browser with defaults, and one with the locale of the previous test.
  const readMetrics = async () => (await server.fetchFromOperator<string>('/metrics')).text;
  await eventually('the warm browsers', readMetrics, text => /^berth_warm_browsers 2$/m.test(text), 60_000);
  const { body: session } = await create({}, { traceparent: `00-${TRACE_ID.replace('0', '1')}-${CALLER_SPAN_ID}-01` });
  const claimSpan = await receiver.span(
    'session.claim',
    ({ attributes }) => attributes['berth.session_id'] === session.id,
  );
  assert.equal(claimSpan.traceId, TRACE_ID.replace('0', '1'));
  await server.release(session.id);
});

test('a connection and a refused upgrade are each recorded as one span', async () => {
  const { body: session } = await create({ keepAlive: true });
  const traceparent = `00-${TRACE_ID}-${CALLER_SPAN_ID}-01`;
  const client = await CdpClient.connect(session.connectUrl, { traceparent });
  await client.send('Browser.getVersion');
  await client.close();
  const span = await receiver.span('cdp.connection', ({ attributes }) => attributes['berth.session_id'] === session.id);
  assert.deepEqual([span.traceId, span.parentSpanId, span.kind], [TRACE_ID, CALLER_SPAN_ID, SERVER_KIND]);
  assert.equal(span.attributes['berth.application_id'], server.applicationId);
  assert.match(String(span.attributes['berth.request_id']), /^req_[0-9a-f]{32}$/);
  assert.notEqual(span.status, FAILED_STATUS);

  const { body } = await expectUpgradeRefusal(`${session.connectUrl}x`);
  const refusedSpan = await receiver.span('cdp.connection', ({ status }) => status === FAILED_STATUS);
  assert.equal(refusedSpan.attributes['error.type'], 'invalid_credentials');
  assert.equal(refusedSpan.attributes['berth.request_id'], body.requestId);
  await server.release(session.id);
});

test('a 404 response does not mark the span of the request as failed, and the error code is an attribute', async () => {
  const { body } = await server.api<ErrorBody>('GET', '/v1/browsers/sessions/01a1fa50-5319-7450-a6b3-c787ada50631');
  const span = await receiver.span(
    'readSession',
    ({ attributes }) => attributes['berth.request_id'] === body.requestId,
  );
  assert.equal(span.attributes['berth.error_code'], 'not_found');
  assert.equal(span.attributes['http.response.status_code'], 404);
  assert.notEqual(span.status, FAILED_STATUS);
});

test('an invalid traceparent starts a new trace, and an unsampled traceparent records no span', async () => {
  for (const traceparent of [
    '',
    'hello',
    `00-${'0'.repeat(32)}-${CALLER_SPAN_ID}-01`,
    `ff-${TRACE_ID}-${CALLER_SPAN_ID}-01`,
  ]) {
    const requestId = `strange-${traceparent.length}-${traceparent.slice(0, 2)}`;
    await server.api('GET', '/v1/browsers/sessions', { headers: { traceparent, 'x-request-id': requestId } });
    const span = await receiver.span('listSessions', it => it.attributes['berth.request_id'] === requestId);
    assert.equal(span.parentSpanId, undefined);
    assert.notEqual(span.traceId, TRACE_ID);
  }
  const unsampledHeaders = { traceparent: `00-${TRACE_ID}-${CALLER_SPAN_ID}-00`, 'x-request-id': 'not-to-be-recorded' };
  await server.api('GET', '/v1/browsers/sessions', { headers: unsampledHeaders });
  await server.api('GET', '/v1/browsers/sessions', { headers: { 'x-request-id': 'to-be-recorded' } });
  await receiver.span('listSessions', it => it.attributes['berth.request_id'] === 'to-be-recorded');
  assert.ok(!receiver.spans.some(it => it.attributes['berth.request_id'] === 'not-to-be-recorded'));
});

test('the server log contains the trace id, and health probes are not traced', async () => {
  await server.api('GET', '/healthz');
  const { body: session } = await create({}, { 'x-request-id': 'in-log-and-trace' });
  const span = await receiver.span('createSession', it => it.attributes['berth.request_id'] === 'in-log-and-trace');
  const line = await eventually('the line in the log', () =>
    server.log().find(it => it.includes('createSession.end') && it.includes('in-log-and-trace')),
  );
  assert.equal(JSON.parse(line ?? '{}').traceId, span.traceId);
  assert.ok(!receiver.spans.some(({ name }) => name === 'readHealth' || name === 'readReadiness'));
  await server.release(session.id);
});

test('spans are sent to the configured address with the configured headers, and without secrets', async () => {
  const { path, headers } = receiver.requests[0] ?? assert.fail('the collector received no request');
  assert.equal(path, '/v1/traces');
  assert.equal(headers['content-type'], 'application/json');
  assert.deepEqual([headers['x-tenant'], headers.authorization], ['berth', 'Basic abc']);
  const all = JSON.stringify(receiver.spans, (_, value) => (typeof value === 'bigint' ? String(value) : value));
  assert.ok(!all.includes(server.key) && !all.includes('signingKey'));
});

test('an unreachable collector does not affect sessions, and the failure to send traces is logged', async () => {
  const serverWithoutCollector = await startServer({
    env: {
      BERTH_ENGINE: LIGHT_ENGINE,
      BERTH_SLOTS: '2',
      BERTH_WARM: '0',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    },
  });
  const session = await serverWithoutCollector.createSession();
  await serverWithoutCollector.release(session.id);
  await serverWithoutCollector.kill('SIGINT');
  // The last lines may be written after the process has ended.
  await eventually('the line in the log', () =>
    serverWithoutCollector.log().some(line => line.includes('trace.not_sent')),
  );
});
