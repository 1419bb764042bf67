// A proxy between a client and a server that records the requests, because only a proxy can count the requests that a
// library sends.
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { after } from 'node:test';

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  readonly status: number;
}

export interface CountingProxy {
  readonly url: string;
  /** Returns the requests since the previous call. */
  takeRequests(): RecordedRequest[];
}

export async function openCountingProxy(target: string): Promise<CountingProxy> {
  const requests: RecordedRequest[] = [];
  const server = createServer((incomingRequest, outgoingResponse) => {
    void (async () => {
      const body = await buffer(incomingRequest);
      const { method = 'GET', url: path = '/', headers } = incomingRequest;
      const targetRequest = request(`${target}${path}`, { method, headers, agent: false });
      targetRequest.end(body);
      targetRequest.on('error', () => outgoingResponse.destroy());
      targetRequest.on('response', response => {
        requests.push({ method, path, headers, body: body.toString(), status: response.statusCode ?? 0 });
        outgoingResponse.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoingResponse);
      });
    })().catch(() => outgoingResponse.destroy()); // the client disconnected during its request
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return { url: `http://127.0.0.1:${port}`, takeRequests: () => requests.splice(0) };
}
