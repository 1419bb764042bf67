// Sends one HTTP request over its own connection: no pooling, redirects, retries or conversion.
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';

const ANSWER_MS = 60_000;

export interface HttpAnswer<Body = unknown> {
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
): Promise<HttpAnswer<Body>> {
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  const answer = await new Promise<{ status: number; headers: IncomingHttpHeaders; text: string }>(
    (resolve, reject) => {
      const sent = request(url, { method, headers: { ...length, ...headers }, agent: false, timeout: ANSWER_MS });
      sent.on('response', response => {
        const { statusCode = 0, headers } = response;
        text(response).then(read => resolve({ status: statusCode, headers, text: read }), reject);
      });
      sent.on('timeout', () => sent.destroy(new Error(`${method} ${url} was not answered within ${ANSWER_MS} ms`)));
      sent.on('error', reject);
      sent.end(body);
    },
  );
  const isJson = /^application\/([\w.-]+\+)?json/.test(answer.headers['content-type'] ?? '');
  return { ...answer, body: isJson && answer.text !== '' ? JSON.parse(answer.text) : answer.text };
}
