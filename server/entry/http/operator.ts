// The operator's listener: /metrics for Prometheus and /readyz for monitoring systems, separate from the address that
// callers use. It requires no credential, so access is controlled by the address on which it listens.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Readiness } from '../../../contract/service.ts';
import { reason } from '../../kit/fault.ts';
import { listenFailure } from '../../kit/listen-failure.ts';
import type { Closeable } from '../../kit/scope.ts';
import { withTimeout } from '../../kit/wait.ts';

const HEADER_BYTES_MAX = 8 * 1024;
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 10_000;
const CONNECTIONS_MAX = 100;
const READY_TIMEOUT_MS = 5_000;

export interface ReadinessResult {
  readonly ok: boolean;
  readonly checks: Readiness['checks'];
}

export interface OperatorParts {
  readonly listen: { readonly host: string; readonly port: number };
  readonly checkReadiness: () => Promise<ReadinessResult>;
  readonly metrics: { readonly contentType: string; metrics(): Promise<string> };
}

export interface OperatorListener extends Closeable {
  /** The listening address. If the configured port is 0, it contains the assigned port. */
  readonly url: string;
}

/** @throws Error that names BERTH_OPERATOR_LISTEN if the server cannot listen on the address. */
export async function openOperator(parts: OperatorParts): Promise<OperatorListener> {
  const limits = {
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
  };
  const server = createServer(limits, (request, response) => {
    void responseTo(parts, request).then(
      result => send(request, response, result),
      error => send(request, response, { status: 500, text: `${reason(error)}\n`, type: TEXT_TYPE }),
    );
  });
  server.maxConnections = CONNECTIONS_MAX;
  await listen(server, parts.listen);
  const { address, family, port } = server.address() as AddressInfo; // A listening TCP server has an AddressInfo.
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    close: () => closeServer(server),
  };
}

interface OperatorResponse {
  readonly status: number;
  readonly text: string;
  readonly type: string;
}

const TEXT_TYPE = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';

async function responseTo(
  { checkReadiness, metrics }: OperatorParts,
  { method, url = '' }: IncomingMessage,
): Promise<OperatorResponse> {
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: 'Use GET.\n', type: TEXT_TYPE };
  switch (url.split('?', 1)[0]) {
    case '/metrics':
      return { status: 200, text: await metrics.metrics(), type: metrics.contentType };
    case '/readyz': {
      const { ok, checks } = await checkReady(checkReadiness);
      const body: Readiness = { status: ok ? 'ready' : 'not_ready', checks };
      return { status: ok ? 200 : 503, text: JSON.stringify(body), type: JSON_TYPE };
    }
    default:
      return { status: 404, text: 'Available paths: /metrics and /readyz.\n', type: TEXT_TYPE };
  }
}

/** A check that throws or hangs counts as not ready. */
async function checkReady(checkReadiness: () => Promise<ReadinessResult>): Promise<ReadinessResult> {
  try {
    return await withTimeout(READY_TIMEOUT_MS, 'the readiness checks', checkReadiness);
  } catch (error) {
    return { ok: false, checks: [{ name: 'checks', ok: false, detail: reason(error) }] };
  }
}

function send({ method }: IncomingMessage, response: ServerResponse, { status, text, type }: OperatorResponse): void {
  const length = { 'content-length': Buffer.byteLength(text) };
  const securityHeaders = {
    server: 'berth-operator',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  };
  response.writeHead(status, { 'content-type': type, ...length, ...securityHeaders });
  response.end(method === 'HEAD' ? undefined : text);
}

function listen(server: Server, { host, port }: OperatorParts['listen']): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', error => {
    const advice = 'Choose another address with BERTH_OPERATOR_LISTEN, or `off`.';
    reject(listenFailure(`${host}:${port}`, error, advice));
  });
  server.listen({ host, port, exclusive: true }, resolve);
  return promise;
}

function closeServer(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeAllConnections();
  return promise;
}
