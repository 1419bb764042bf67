// Sends one HTTP request over its own connection: no pooling, redirects, retries or conversion.
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';

const RESPONSE_TIMEOUT_MS = 60_000;

export interface HttpResult<Body = unknown> {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The parsed JSON, if the response is JSON. */
  readonly body: Body;
  readonly text: string;
}

export interface HttpRequestOptions {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer | undefined;
}

export async function sendRequest<Body>(
  url: string,
  { method = 'GET', headers = {}, body }: HttpRequestOptions,
): Promise<HttpResult<Body>> {
  const lengthHeader = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  const rawResponse = await new Promise<{ status: number; headers: IncomingHttpHeaders; text: string }>(
    (resolve, reject) => {
      const clientRequest = request(url, {
        method,
        headers: { ...lengthHeader, ...headers },
        agent: false,
        timeout: RESPONSE_TIMEOUT_MS,
      });
      clientRequest.on('response', response => {
        const { statusCode = 0, headers } = response;
        text(response).then(read => resolve({ status: statusCode, headers, text: read }), reject);
      });
      clientRequest.on('timeout', () =>
        clientRequest.destroy(new Error(`${method} ${url} got no response within ${RESPONSE_TIMEOUT_MS} ms`)),
      );
      clientRequest.on('error', reject);
      clientRequest.end(body);
    },
  );
  const isJson = /^application\/([\w.-]+\+)?json/.test(rawResponse.headers['content-type'] ?? '');
  return { ...rawResponse, body: isJson && rawResponse.text !== '' ? JSON.parse(rawResponse.text) : rawResponse.text };
}
