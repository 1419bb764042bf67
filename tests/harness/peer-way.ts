// The path from other hosts to one host in a fleet that uses TLS. A relay on this path records the passing data, and
// can be replaced by an impostor that responds in place of the host.
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { type Authority, makeAuthority, type SignedCertificate } from './authority.ts';
import { freePort } from './free-port.ts';

/** The address that other hosts connect to. The host itself listens at 127.0.0.1, so that the relay is between them. */
const ADDRESS = '127.0.0.2';
const RECORDED_BYTES_MAX = 4 * 1024 ** 2;

export interface Impostor {
  /** Returns the data that clients sent after the handshake. */
  readonly received: () => string;
  readonly connections: () => number;
}

export interface PeerPath {
  readonly address: string;
  /** Settings of all hosts, with the authority that they trust. */
  readonly shared: Readonly<Record<string, string>>;
  /** Settings of the host at the end of the path. */
  readonly own: Readonly<Record<string, string>>;
  /** Issues certificates from the authority that the hosts trust. */
  readonly issue: Authority['issue'];
  /** Returns the bytes that passed through the relay. */
  relayedBytes(): Buffer;
  /** Lets an impostor with this certificate respond in place of the host while `during` is running. */
  impersonate(certificate: SignedCertificate, during: (impostor: Impostor) => Promise<void>): Promise<void>;
}

export async function openPeerPath(): Promise<PeerPath> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-peer-'));
  const authority = makeAuthority('Hosts of the test');
  const signed = authority.issue(ADDRESS);
  const file = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const chunks: Buffer[] = [];
  const sockets = new Set<Socket>();
  let bytes = 0;
  let impostor: Server | undefined;
  const port = await freePort();
  const relay = createServer(socket => {
    const to = impostor?.address() ?? { address: '127.0.0.1', port };
    if (typeof to === 'string') return void socket.destroy();
    const upstream = connect(to.port, to.address);
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(one);
      one.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= RECORDED_BYTES_MAX) chunks.push(chunk);
      });
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.once('close', () => sockets.delete(one));
    }
  });
  relay.listen(port, ADDRESS);
  await once(relay, 'listening');
  const dropAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  after(() => {
    dropAll();
    relay.close();
    rmSync(folder, { recursive: true });
  });
  return {
    address: ADDRESS,
    shared: { BERTH_TLS_PEER_CA: file('ca.pem', authority.pem) },
    own: {
      BERTH_PEER_URL: `https://${ADDRESS}:${port}`,
      BERTH_TLS_PEER_CERT: file('cert.pem', signed.cert),
      BERTH_TLS_PEER_KEY: file('key.pem', signed.key),
    },
    issue: (...asked) => authority.issue(...asked),
    relayedBytes: () => Buffer.concat(chunks),
    impersonate: async (certificate, during) => {
      const received: Buffer[] = [];
      let connections = 0;
      const server = createTlsServer({ ...certificate }, socket => {
        socket.on('data', (chunk: Buffer) => received.push(chunk));
        socket.on('error', () => {});
      });
      server.on('connection', () => {
        connections += 1;
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      impostor = server;
      dropAll();
      try {
        await during({ received: () => Buffer.concat(received).toString('latin1'), connections: () => connections });
      } finally {
        impostor = undefined;
        dropAll();
        server.close();
      }
    },
  };
}
