// A proxy that adds a credential to requests and passes the requests on, for programs that cannot send a credential.
// Like a reverse proxy, it replaces its own name in Host and Origin with the name of the target. Other values of both
// headers reach the target unchanged.
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { after } from 'node:test';

/**
 * Returns the address at which requests reach `target` with this `Authorization` header. The listener is closed after
 * the test file.
 */
export async function openAuthorizingProxy(target: URL, authorization: string): Promise<URL> {
  const listener = createServer((incomingRequest, outgoingResponse) => {
    const { method, headers } = incomingRequest;
    const { host, origin } = headers;
    const renamedHeaders = {
      ...(host === ownUrl.host ? { host: target.host } : {}),
      ...(origin === ownUrl.origin ? { origin: target.origin } : {}),
    };
    const targetRequest = request(target, {
      method,
      headers: { ...headers, ...renamedHeaders, authorization },
      agent: false,
    });
    targetRequest.on('response', response => {
      outgoingResponse.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(outgoingResponse);
    });
    targetRequest.on('error', () => outgoingResponse.destroy());
    outgoingResponse.on('close', () => targetRequest.destroy());
    incomingRequest.pipe(targetRequest);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  after(() => {
    listener.close();
    listener.closeAllConnections();
  });
  const address = listener.address();
  if (address === null || typeof address === 'string')
    throw new Error('the authorizing proxy has no port, because its server is not listening');
  const ownUrl = new URL(target.pathname, `http://127.0.0.1:${address.port}`);
  return ownUrl;
}
