// A minimal name server for the egress tests. It answers A and AAAA queries with the result of a function, over UDP on
// loopback, and counts them.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { parseAddress } from '../../server/engines/egress/address.ts';

export interface Question {
  readonly name: string;
  readonly type: 'A' | 'AAAA';
  /** How many times this query has arrived, including this one. */
  readonly time: number;
}

export interface Answer {
  readonly addresses: readonly string[];
  readonly ttlSeconds?: number;
  /** The name does not exist. */
  readonly isUnknown?: true;
}

/** A promise delays the answer. An answer without addresses means that the name exists but has no address. */
export type Answerer = (question: Question) => Answer | Promise<Answer>;

export interface NameServer extends AsyncDisposable {
  /** The address for the `servers` option of `createResolver`. */
  readonly address: string;
  queryCount(name: string, type?: Question['type']): number;
}

/**
 * Options for `createResolver` with long limits, so that a slow machine causes no repeated query and no missing address
 * family.
 */
export const PATIENT_TIMEOUTS = { queryMs: 30_000, otherFamilyMs: 30_000 } as const;

const TYPES: Readonly<Record<number, Question['type']>> = { 1: 'A', 28: 'AAAA' };
const HEADER_BYTES = 12;
const MAPPED_PREFIX = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);

/** Opens a name server. A `port` of 0 chooses a free one. */
export async function openNameServer(answer: Answerer, port = 0): Promise<NameServer> {
  const socket = createSocket('udp4');
  const queryCounts = new Map<string, number>();
  socket.on('message', (message, from) => {
    const { name, end } = readName(message);
    const type = TYPES[message.readUInt16BE(end)];
    if (!type) return;
    const key = `${name} ${type}`;
    queryCounts.set(key, (queryCounts.get(key) ?? 0) + 1);
    const send = (response: Answer): void =>
      socket.send(encodeReply(message.subarray(0, end + 4), response), from.port, from.address);
    const response = answer({ name, type, time: queryCounts.get(key) ?? 0 });
    if (response instanceof Promise) void response.then(send);
    else send(response);
  });
  socket.bind(port, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    queryCount: (name, type = 'A') => queryCounts.get(`${name} ${type}`) ?? 0,
    [Symbol.asyncDispose]: async () => {
      socket.close();
      await once(socket, 'close');
    },
  };
}

function readName(message: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}

function encodeReply(question: Buffer, { addresses, ttlSeconds = 0, isUnknown }: Answer): Buffer {
  const head = Buffer.from(question);
  head.writeUInt16BE(isUnknown ? 0x8183 : 0x8180, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(addresses.length, 6);
  head.writeUInt32BE(0, 8);
  return Buffer.concat([head, ...addresses.map(text => encodeRecord(text, ttlSeconds))]);
}

function encodeRecord(text: string, ttlSeconds: number): Buffer {
  const address = parseAddress(text)?.bytes ?? Buffer.alloc(0);
  // The resolver treats a mapped address as IPv4, but in DNS it is an AAAA record of 16 bytes.
  const bytes = text.includes(':') && address.length === 4 ? Buffer.concat([MAPPED_PREFIX, address]) : address;
  const fields = Buffer.alloc(HEADER_BYTES);
  fields.writeUInt16BE(0xc00c, 0);
  fields.writeUInt16BE(bytes.length === 4 ? 1 : 28, 2);
  fields.writeUInt16BE(1, 4);
  fields.writeUInt32BE(ttlSeconds, 6);
  fields.writeUInt16BE(bytes.length, 10);
  return Buffer.concat([fields, bytes]);
}
