// The words of a client of a SOCKS5 proxy (RFC 1928, user and password RFC 1929). Names are handed on as names.
import type { Socket } from 'node:net';
import { Failed, ProxyFailed } from './failure.ts';
import { readAnswer } from './read-answer.ts';
import type { Target } from './target.ts';
import type { Upstream } from './upstream.ts';

const VERSION = 5;
const NO_USER = 0;
const USER_AND_PASSWORD = 2;
const CONNECT = 1;
const KIND = { address4: 1, name: 3, address6: 4 } as const;
const ADDRESS_BYTES_MAX = 256;
const TEXT_BYTES_MAX = 255;

/** Agrees on a method and says who we are. */
export async function greetSocks(socket: Socket, upstream: Upstream): Promise<void> {
  const methods = upstream.credentials ? [NO_USER, USER_AND_PASSWORD] : [NO_USER];
  socket.write(Buffer.from([VERSION, methods.length, ...methods]));
  const chosen = await pair(socket, VERSION);
  if (chosen === NO_USER) return;
  if (chosen !== USER_AND_PASSWORD || !upstream.credentials) throw new ProxyFailed('proxy_refused_user', upstream.name);
  const { username, password } = upstream.credentials;
  socket.write(Buffer.concat([Buffer.from([1]), counted(username), counted(password.reveal())]));
  if ((await pair(socket, 1)) !== 0) throw new ProxyFailed('proxy_refused_user', upstream.name);
}

export async function socksTunnel(socket: Socket, upstream: Upstream, target: Target): Promise<void> {
  const port = Buffer.from([target.port >> 8, target.port & 0xff]);
  socket.write(Buffer.concat([Buffer.from([VERSION, CONNECT, 0]), place(target), port]));
  const reply = await readAnswer(socket, ADDRESS_BYTES_MAX, bytes => {
    const length = replyLength(bytes, upstream);
    return length !== undefined && bytes.length >= length ? { value: bytes[1], used: length } : undefined;
  });
  if (reply !== 0) throw new Failed('host_not_reached');
}

/** An answer of two bytes: its version, and what it says. */
function pair(socket: Socket, version: number): Promise<number> {
  return readAnswer(socket, 2, bytes => {
    if (bytes[0] !== version) throw new Failed('bad_answer');
    return bytes[1] === undefined ? undefined : { value: bytes[1], used: 2 };
  });
}

/** Version, reply, nothing, the bound address, its port; a failure may be told with less than all of it. */
function replyLength(bytes: Buffer, upstream: Upstream): number | undefined {
  if (bytes[0] !== undefined && bytes[0] !== VERSION) throw new ProxyFailed('proxy_unreachable', upstream.name);
  if (bytes[1] !== undefined && bytes[1] !== 0) return 2;
  const [, , , kind, first] = bytes;
  if (kind === undefined || first === undefined) return undefined;
  if (kind === KIND.address4) return 10;
  if (kind === KIND.address6) return 22;
  if (kind === KIND.name) return 7 + first;
  throw new Failed('bad_answer');
}

function place({ hostname, address }: Target): Buffer {
  if (!address) return Buffer.concat([Buffer.from([KIND.name]), counted(hostname)]);
  return Buffer.concat([Buffer.from([address.family === 4 ? KIND.address4 : KIND.address6]), address.bytes]);
}

function counted(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length > TEXT_BYTES_MAX) throw new TypeError(`SOCKS5 carries at most ${TEXT_BYTES_MAX} bytes of it`);
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}
