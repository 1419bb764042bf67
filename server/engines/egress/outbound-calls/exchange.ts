// Sends one request over an open connection and receives its response. Follows no redirect, decodes nothing and stores
// nothing.
import { type IncomingMessage, request as requestOver } from 'node:http';
import type { Socket } from 'node:net';
import { guardListener } from '../../../kit/guard.ts';
import { CallError } from './call-failure.ts';
import { CollectedBytes } from './collected-bytes.ts';
import type { CallLimits } from './limits.ts';

export interface Message {
  readonly method: string;
  readonly path: string;
  /** Names and values alternate. */
  readonly headers: readonly string[];
  readonly body: Uint8Array | undefined;
  readonly responseBytesMax: number;
}

export interface ReceivedResponse {
  readonly status: number;
  /** By lower-case name. Values of a repeated name are joined with a comma. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

/**
 * Sends a request and receives the response. Rejects with CallError, or with a Node error. Destroying the socket ends
 * the exchange.
 */
export function exchange(socket: Socket, message: Message, limits: CallLimits): Promise<ReceivedResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<ReceivedResponse>();
  const { method, path, headers, body } = message;
  const request = requestOver({
    ...{ method, path, headers, setHost: false, maxHeaderSize: limits.responseHeadBytesMax },
    // The request has no agent: Node's agents read proxies from the environment.
    createConnection: () => socket,
  });
  // 0 means no limit. With a limit, Node would silently drop the excess headers.
  request.maxHeadersCount = 0;
  let interimCount = 0;
  let hasResponse = false;
  request.on(
    'information',
    guardListener(reject, () => {
      interimCount += 1;
      if (interimCount > limits.interimResponsesMax) throw new CallError('bad_answer');
    }),
  );
  request.once(
    'response',
    guardListener(reject, async (response: IncomingMessage) => {
      hasResponse = true;
      resolve(await receiveResponse(response, message, limits));
    }),
  );
  // Once a response has begun, its own stream reports how it ends. Errors of the request are then ignored: a host may
  // respond before it has read the whole request.
  const onEnd = (error: unknown): void => {
    if (!hasResponse) reject(error);
  };
  request.on('error', onEnd);
  // A request may close without an error, for example after 101, which switches to another protocol.
  request.once('close', () => onEnd(new CallError('bad_answer')));
  request.end(body);
  return promise;
}

async function receiveResponse(
  response: IncomingMessage,
  message: Message,
  limits: CallLimits,
): Promise<ReceivedResponse> {
  const status = response.statusCode ?? 0;
  // Without this listener, an error after the first one would have no listener and would end the process.
  response.on('error', () => {});
  if (response.rawHeaders.length > 2 * limits.responseHeadersMax)
    throw new CallError('answer_head_too_large', { status });
  const headers = headersIn(response.rawHeaders);
  if (!isPlain(headers.get('content-encoding'), 'identity') || !isPlain(headers.get('transfer-encoding'), 'chunked'))
    throw new CallError('answer_encoded', { status });
  const declaredBytes = Number(headers.get('content-length') ?? 0);
  if (message.method !== 'HEAD' && declaredBytes > message.responseBytesMax)
    throw new CallError('answer_too_large', { status });
  const body = new CollectedBytes(message.responseBytesMax);
  try {
    for await (const part of response)
      if (part instanceof Uint8Array && !body.add(part)) throw new CallError('answer_too_large', { status });
  } catch (error) {
    throw error instanceof CallError ? error : new CallError('closed_early', { status });
  }
  return { status, headers, body: body.bytes };
}

function headersIn(raw: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    const value = (raw[at + 1] ?? '').toWellFormed();
    const earlierValue = headers.get(name);
    headers.set(name, earlierValue === undefined ? value : `${earlierValue}, ${value}`);
  }
  return headers;
}

const isPlain = (value: string | undefined, plainCoding: string): boolean =>
  value === undefined || value.trim() === '' || value.trim().toLowerCase() === plainCoding;
