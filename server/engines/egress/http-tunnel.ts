// The client side of an HTTP proxy: CONNECT and Proxy-Authorization.
import type { Socket } from 'node:net';
import { FailedError, ProxyFailedError } from './failure.ts';
import { ClosedWithoutResponse, readResponse } from './read-response.ts';
import type { Target } from './target.ts';
import type { Upstream } from './upstream.ts';

const HEAD_BYTES_MAX = 16 * 1024;
const HEAD_END = '\r\n\r\n';
const STATUS_LINE_PATTERN = /^HTTP\/1\.[01] (\d{3})(?: |\r\n)/;
const AUTHENTICATION_REQUIRED_STATUS = 407;

const authorityOf = ({ hostname, port }: Pick<Target, 'hostname' | 'port'>): string =>
  hostname.includes(':') ? `[${hostname}]:${port}` : `${hostname}:${port}`;

/** Returns the value of the Proxy-Authorization header. Undefined for a proxy without credentials. */
export function proxyAuthorization({ credentials }: Upstream): string | undefined {
  if (!credentials) return undefined;
  return `Basic ${Buffer.from(`${credentials.username}:${credentials.password.reveal()}`).toString('base64')}`;
}

export async function askForTunnel(socket: Socket, upstream: Upstream, target: Target): Promise<void> {
  const status = await sendConnect(socket, upstream, target);
  if (status === AUTHENTICATION_REQUIRED_STATUS) throw new ProxyFailedError('proxy_refused_user', upstream.name);
  if (status < 200 || status > 299) throw new FailedError('host_not_reached');
}

/**
 * Sends CONNECT and returns the status of the response. If the proxy closes the connection without a response, rejects
 * with FailedError `host_not_reached`, because some proxies do so if they cannot reach the host.
 */
export async function sendConnect(socket: Socket, upstream: Upstream, target: Target): Promise<number> {
  const authority = authorityOf(target);
  const authorization = proxyAuthorization(upstream);
  const lines = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`, 'Proxy-Connection: keep-alive'];
  socket.write(
    `${[...lines, ...(authorization ? [`Proxy-Authorization: ${authorization}`] : [])].join('\r\n')}${HEAD_END}`,
  );
  return readResponse(socket, HEAD_BYTES_MAX, bytes => {
    const end = bytes.indexOf(HEAD_END);
    if (end < 0) return undefined;
    const status = STATUS_LINE_PATTERN.exec(bytes.subarray(0, end + HEAD_END.length).toString('latin1'))?.[1];
    if (status === undefined) throw new FailedError('bad_answer');
    return { value: Number(status), usedBytes: end + HEAD_END.length };
  }).catch(error => {
    throw error instanceof ClosedWithoutResponse ? new FailedError('host_not_reached', error) : error;
  });
}
