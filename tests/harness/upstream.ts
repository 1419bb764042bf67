// A service on loopback that operations call. It records requests and answers as a test defines. With `settings`, a
// server under test can reach it.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { after } from 'node:test';

export interface ReceivedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type UpstreamHandler = (request: ReceivedRequest, response: ServerResponse) => void;

export interface Upstream {
  readonly port: number;
  /** `127.0.0.1:PORT`. */
  readonly host: string;
  readonly url: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Returns the requests so far, oldest first. With `path`, only requests whose path begins with `path`. */
  receivedRequests(path?: string): readonly ReceivedRequest[];
  /** Sets the response to requests whose path begins with `path`. The longest matching path applies. */
  respondTo(path: string, handler: UpstreamHandler): void;
  /** Stops accepting connections. */
  close(): void;
}

export async function openUpstream(): Promise<Upstream> {
  const receivedRequests: ReceivedRequest[] = [];
  const handlers = new Map<string, UpstreamHandler>([['/', (_, response) => void sendJson(response, 200, {})]]);
  const server = createServer((request, response) => void serve(request, response));
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.on('error', () => {});
    response.on('error', () => {});
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = '', url = '', headers } = request;
    const receivedRequest = { method, url, headers, body: Buffer.concat(chunks).toString() };
    receivedRequests.push(receivedRequest);
    const [path = '/'] = [...handlers.keys()]
      .filter(prefix => url.startsWith(prefix))
      .sort((a, b) => b.length - a.length);
    handlers.get(path)?.(receivedRequest, response);
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('the upstream service has no port, because its server is not listening');
  const { port } = address;
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  after(close);
  return {
    ...{ port, host: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}` },
    settings: { BERTH_EGRESS_ALLOW: `127.0.0.1/32:${port}` },
    receivedRequests: (path = '/') => receivedRequests.filter(({ url }) => url.startsWith(path)),
    respondTo: (path, handler) => void handlers.set(path, handler),
    close,
  };
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
