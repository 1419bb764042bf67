// A small OpenTelemetry collector for tests. It receives OTLP over HTTP in JSON and returns the spans.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { after } from 'node:test';
import { eventually } from './until.ts';

export interface ReceivedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly kind: number;
  /** The OTLP status code. 2 means an error. */
  readonly status: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
  readonly beganNs: bigint;
  readonly endedNs: bigint;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface OtlpRequest {
  readonly resourceSpans: ReadonlyArray<{
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: ReadonlyArray<{ readonly spans: readonly OtlpSpan[] }>;
  }>;
}

interface OtlpSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly status?: { readonly code?: number };
  readonly attributes: readonly Attribute[];
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

export interface OtlpReceiver {
  /** The value of OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  readonly requests: ReadonlyArray<{ readonly path: string; readonly headers: IncomingHttpHeaders }>;
  readonly spans: readonly ReceivedSpan[];
  /** Resolves to a matching span, once it has arrived. */
  span(name: string, satisfies?: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>;
}

/** Starts a receiver that is closed at the end of the test or test file. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const receiver = await openOtlpReceiver();
  after(() => receiver.close());
  return receiver;
}

export async function openOtlpReceiver(): Promise<OtlpReceiver & { close(): void }> {
  const spans: ReceivedSpan[] = [];
  const requests: Array<{ path: string; headers: IncomingHttpHeaders }> = [];
  const server = createServer(async (request, response) => {
    requests.push({ path: request.url ?? '', headers: request.headers });
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return void response.destroy(); // the sender disconnected during its request
    spans.push(...spansOf(JSON.parse(body)));
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || !address)
    throw new Error('the OTLP receiver has no port, because its server is not listening');
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    spans,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
    span: async (name, satisfies = () => true) => {
      const look = (): ReceivedSpan | undefined => spans.find(span => span.name === name && satisfies(span));
      const matchingSpan = await eventually(`the span ${name}`, look, span => span !== undefined);
      if (!matchingSpan) throw new Error(`no matching span ${name} was received`);
      return matchingSpan;
    },
  };
}

const spansOf = ({ resourceSpans }: OtlpRequest): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(span => ({
        name: span.name,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId || undefined,
        kind: span.kind,
        status: span.status?.code ?? 0,
        attributes: valuesOf(span.attributes),
        resource: valuesOf(resource.attributes),
        beganNs: BigInt(span.startTimeUnixNano),
        endedNs: BigInt(span.endTimeUnixNano),
      })),
    ),
  );

const valuesOf = (attributes: readonly Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
