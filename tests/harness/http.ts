// Sends one HTTP request over its own connection: no pooling, redirects, retries or conversion.
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';

const RESPONSE_MS = 60_000;

export interface HttpResult<Body = unknown> {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The parsed JSON, if the response is JSON. */
  readonly body: Body;
  readonly text: string;
}

export interface HttpAsk {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer | undefined;
}

export async function ask<Body>(
  url: string,
  { method = 'GET', headers = {}, body }: HttpAsk,
): Promise<HttpResult<Body>> {
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  const result = await new Promise<{ status: number; headers: IncomingHttpHeaders; text: string }>(
    (resolve, reject) => {
      const sent = request(url, { method, headers: { ...length, ...headers }, agent: false, timeout: RESPONSE_MS });
      sent.on('response', response => {
        const { statusCode = 0, headers } = response;
        text(response).then(read => resolve({ status: statusCode, headers, text: read }), reject);
      });
      sent.on('timeout', () => sent.destroy(new Error(`${method} ${url} was not answered within ${RESPONSE_MS} ms`)));
      sent.on('error', reject);
      sent.end(body);
    },
  );
  const isJson = /^application\/([\w.-]+\+)?json/.test(result.headers['content-type'] ?? '');
  return { ...result, body: isJson && result.text !== '' ? JSON.parse(result.text) : result.text };
}
