// The client side of SOCKS5 (RFC 1928), with authentication by user name and password (RFC 1929). The proxy resolves
// names.
import type { Socket } from 'node:net';
import { FailedError, ProxyFailedError } from './failure.ts';
import { readResponse } from './read-response.ts';
import type { Target } from './target.ts';
import type { Upstream } from './upstream.ts';

const VERSION = 5;
const NO_AUTHENTICATION_METHOD = 0;
const PASSWORD_METHOD = 2;
const CONNECT_COMMAND = 1;
const ADDRESS_TYPES = { address4: 1, name: 3, address6: 4 } as const;
const ADDRESS_BYTES_MAX = 256;
const TEXT_BYTES_MAX = 255;

/** Negotiates the authentication method and authenticates. */
export async function greetSocks(socket: Socket, upstream: Upstream): Promise<void> {
  const methods = upstream.credentials ? [NO_AUTHENTICATION_METHOD, PASSWORD_METHOD] : [NO_AUTHENTICATION_METHOD];
  socket.write(Buffer.from([VERSION, methods.length, ...methods]));
  const chosenMethod = await readPair(socket, VERSION);
  if (chosenMethod === NO_AUTHENTICATION_METHOD) return;
  if (chosenMethod !== PASSWORD_METHOD || !upstream.credentials)
    throw new ProxyFailedError('proxy_refused_user', upstream.name);
  const { username, password } = upstream.credentials;
  socket.write(Buffer.concat([Buffer.from([1]), withLengthPrefix(username), withLengthPrefix(password.reveal())]));
  if ((await readPair(socket, 1)) !== 0) throw new ProxyFailedError('proxy_refused_user', upstream.name);
}

export async function openSocksTunnel(socket: Socket, upstream: Upstream, target: Target): Promise<void> {
  const port = Buffer.from([target.port >> 8, target.port & 0xff]);
  socket.write(Buffer.concat([Buffer.from([VERSION, CONNECT_COMMAND, 0]), encodeAddress(target), port]));
  const replyCode = await readResponse(socket, ADDRESS_BYTES_MAX, bytes => {
    const length = replyLength(bytes, upstream);
    return length !== undefined && bytes.length >= length ? { value: bytes[1], usedBytes: length } : undefined;
  });
  if (replyCode !== 0) throw new FailedError('host_not_reached');
}

/** Reads a reply of two bytes, version and value, and returns the value. */
function readPair(socket: Socket, version: number): Promise<number> {
  return readResponse(socket, 2, bytes => {
    if (bytes[0] !== version) throw new FailedError('bad_answer');
    return bytes[1] === undefined ? undefined : { value: bytes[1], usedBytes: 2 };
  });
}

/**
 * Returns the length of a reply that consists of version, reply, reserved, bound address and port. A failure reply may
 * be shorter.
 */
function replyLength(bytes: Buffer, upstream: Upstream): number | undefined {
  if (bytes[0] !== undefined && bytes[0] !== VERSION) throw new ProxyFailedError('proxy_unreachable', upstream.name);
  if (bytes[1] !== undefined && bytes[1] !== 0) return 2;
  const [, , , addressType, nameLength] = bytes;
  if (addressType === undefined || nameLength === undefined) return undefined;
  if (addressType === ADDRESS_TYPES.address4) return 10;
  if (addressType === ADDRESS_TYPES.address6) return 22;
  if (addressType === ADDRESS_TYPES.name) return 7 + nameLength;
  throw new FailedError('bad_answer');
}

function encodeAddress({ hostname, address }: Target): Buffer {
  if (!address) return Buffer.concat([Buffer.from([ADDRESS_TYPES.name]), withLengthPrefix(hostname)]);
  return Buffer.concat([
    Buffer.from([address.family === 4 ? ADDRESS_TYPES.address4 : ADDRESS_TYPES.address6]),
    address.bytes,
  ]);
}

function withLengthPrefix(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length > TEXT_BYTES_MAX)
    throw new TypeError(
      `a host name, user name or password of SOCKS5 has ${bytes.length} bytes, but at most ${TEXT_BYTES_MAX} are allowed`,
    );
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}
