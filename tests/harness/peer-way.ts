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
import { claimFreePort } from './free-port.ts';

/**
 * The address that other hosts connect to. The host itself listens at 127.0.0.1, so that the relay is between it and
 * the other hosts.
 */
const ADDRESS = '127.0.0.2';
const RECORDED_BYTES_MAX = 4 * 1024 ** 2;

export interface Impostor {
  /** Returns the data that clients sent after the handshake. */
  readonly receivedText: () => string;
  readonly connectionCount: () => number;
}

export interface PeerPath {
  readonly address: string;
  /** Settings of all hosts, with the authority that they trust. */
  readonly sharedSettings: Readonly<Record<string, string>>;
  /** Settings of the host at the end of the path. */
  readonly ownSettings: Readonly<Record<string, string>>;
  /** Issues certificates from the authority that the hosts trust. */
  readonly issue: Authority['issue'];
  /** Returns the bytes that passed through the relay. */
  relayedBytes(): Buffer;
  /** Lets an impostor with this certificate respond in place of the host while `work` is running. */
  impersonate(certificate: SignedCertificate, work: (impostor: Impostor) => Promise<void>): Promise<void>;
}

export async function openPeerPath(): Promise<PeerPath> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-peer-'));
  const authority = makeAuthority('Hosts of the test');
  const hostCertificate = authority.issue(ADDRESS);
  const saveFile = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const chunks: Buffer[] = [];
  const sockets = new Set<Socket>();
  let relayedByteCount = 0;
  let impostor: Server | undefined;
  const port = await claimFreePort();
  const relay = createServer(socket => {
    const destination = impostor?.address() ?? { address: '127.0.0.1', port };
    if (typeof destination === 'string') return void socket.destroy();
    const upstream = connect(destination.port, destination.address);
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(one);
      one.on('data', (chunk: Buffer) => {
        relayedByteCount += chunk.length;
        if (relayedByteCount <= RECORDED_BYTES_MAX) chunks.push(chunk);
      });
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.once('close', () => sockets.delete(one));
    }
  });
  relay.listen(port, ADDRESS);
  await once(relay, 'listening');
  const dropConnections = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  after(() => {
    dropConnections();
    relay.close();
    rmSync(folder, { recursive: true });
  });
  return {
    address: ADDRESS,
    sharedSettings: { BERTH_TLS_PEER_CA: saveFile('ca.pem', authority.pem) },
    ownSettings: {
      BERTH_PEER_URL: `https://${ADDRESS}:${port}`,
      BERTH_TLS_PEER_CERT: saveFile('cert.pem', hostCertificate.cert),
      BERTH_TLS_PEER_KEY: saveFile('key.pem', hostCertificate.key),
    },
    issue: (...args) => authority.issue(...args),
    relayedBytes: () => Buffer.concat(chunks),
    impersonate: async (certificate, work) => {
      const receivedChunks: Buffer[] = [];
      let connectionCount = 0;
      const server = createTlsServer({ ...certificate }, socket => {
        socket.on('data', (chunk: Buffer) => receivedChunks.push(chunk));
        socket.on('error', () => {});
      });
      server.on('connection', () => {
        connectionCount += 1;
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      impostor = server;
      dropConnections();
      try {
        await work({
          receivedText: () => Buffer.concat(receivedChunks).toString('latin1'),
          connectionCount: () => connectionCount,
        });
      } finally {
        impostor = undefined;
        dropConnections();
        server.close();
      }
    },
  };
}
