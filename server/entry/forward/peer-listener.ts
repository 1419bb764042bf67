// The address at which other hosts reach this host, in addition to its public address. It is used for TLS between
// hosts, and when several processes on one machine share the public address. The address is a port or a Unix socket.
// Connections are handed to the HTTP server.
import { chmod, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createServer, type ListenOptions, type Server as NetServer, type Socket } from 'node:net';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import { acceptBacklog } from '../../kit/accept-backlog.ts';
import type { Clock } from '../../kit/clock.ts';
import { Fault } from '../../kit/fault.ts';
import { listenFailure } from '../../kit/listen-failure.ts';
import type { Closeable } from '../../kit/scope.ts';

/** Less than the limit of the kernel: the path in a `sockaddr_un` can have at most 107 bytes. */
const SOCKET_PATH_MAX_BYTES = 100;
/** TLS 1.3 can be required, because both ends are hosts of a fleet. */
const TLS = { noDelay: true, minVersion: 'TLSv1.3', handshakeTimeout: 5_000 } as const;
/** How long handshakes may take when the listener closes. The request follows the last message of the handshake. */
const HANDSHAKE_GRACE_MS = 50;

export type PeerAddress = { readonly socket: string } | { readonly host: string; readonly port: number };

export interface PeerCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface PeerListener extends Closeable {
  /** Presents this certificate to hosts that connect from now on. */
  renew(certificate: PeerCertificate): void;
}

/**
 * If `certificate` is given, connections use TLS. `close` stops listening, and ends connections whose handshake is not
 * complete within `HANDSHAKE_GRACE_MS`. The HTTP server closes the connections that were passed to it, once it has
 * answered the requests that arrived on them.
 */
export async function listenForPeers(
  http: Server,
  at: PeerAddress,
  certificate: PeerCertificate | undefined,
  clock: Clock,
): Promise<PeerListener> {
  const serve = (socket: Socket): void => void http.emit('connection', socket);
  const tlsServer = certificate && createTlsServer({ ...TLS, ...certificate });
  const handshakes = new Map<string, Socket>();
  tlsServer?.on('connection', (socket: Socket) => {
    const peer = peerOf(socket);
    handshakes.set(peer, socket);
    socket.once('close', () => {
      if (handshakes.get(peer) === socket) handshakes.delete(peer);
    });
  });
  tlsServer?.on('secureConnection', socket => {
    handshakes.delete(peerOf(socket));
    serve(socket);
  });
  const listener: NetServer = tlsServer ?? createServer({ noDelay: true }, serve);
  if ('socket' in at) await removeStaleSocket(at.socket);
  // Unlike the public address, this address is not shared by several processes.
  const options: ListenOptions = { ...('socket' in at ? { path: at.socket } : at), exclusive: true };
  await new Promise<void>((resolve, reject) => {
    listener.once('error', error => reject(failureAt(at, error)));
    listener.listen(options, resolve);
  });
  if ('socket' in at) await chmod(at.socket, 0o600);
  const close = async (): Promise<void> => {
    await acceptBacklog(listener, clock);
    listener.close();
    if (handshakes.size === 0) return;
    await sleep(HANDSHAKE_GRACE_MS);
    await setImmediate(); // The timer may have fired late, before sockets were read. This waits until they are.
    for (const socket of handshakes.values()) socket.destroy();
  };
  return { close, renew: newCertificate => tlsServer?.setSecureContext({ ...TLS, ...newCertificate }) };
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

const failureAt = (at: PeerAddress, error: unknown): Error =>
  'socket' in at
    ? listenFailure(at.socket, error, 'Set BERTH_DATA_DIR to a folder in which this user can create sockets.')
    : listenFailure(`${at.host}:${at.port}`, error, 'Choose another port in BERTH_PEER_URL.');

/** Removes the socket of a process that was killed. The lock on the folder ensures that no such process is running. */
async function removeStaleSocket(path: string): Promise<void> {
  if (Buffer.byteLength(path) > SOCKET_PATH_MAX_BYTES)
    throw new Fault(
      'data_folder_unusable',
      `The path ${path} is too long for a socket (more than ${SOCKET_PATH_MAX_BYTES} bytes).`,
      {
        advice: 'Set BERTH_DATA_DIR to a folder with a shorter path, or BERTH_PROCESSES to 1.',
      },
    );
  await rm(path, { force: true });
}
