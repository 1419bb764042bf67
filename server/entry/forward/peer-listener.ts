// Where other hosts reach one of several processes of a machine, beside the address that all of them share: a Unix socket, or a port of its
// own. Connections are handed to the HTTP server.
import { chmod, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createServer, type ListenOptions, type Socket } from 'node:net';
import { Fault } from '../../kit/fault.ts';
import type { Closeable } from '../../kit/scope.ts';

/** sockaddr_un holds 107 bytes. */
const SOCKET_PATH_MAX_BYTES = 100;

export type PeerAddress = { readonly socket: string } | { readonly host: string; readonly port: number };

export async function listenForPeers(http: Server, at: PeerAddress): Promise<Closeable> {
  const sockets = new Set<Socket>();
  const listener = createServer({ noDelay: true }, socket => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    http.emit('connection', socket);
  });
  if ('socket' in at) await makeWay(at.socket);
  // Not shared by the processes, as their public address is.
  const options: ListenOptions = { ...('socket' in at ? { path: at.socket } : at), exclusive: true };
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject);
    listener.listen(options, resolve);
  });
  if ('socket' in at) await chmod(at.socket, 0o600);
  const close = async (): Promise<void> => {
    const closed = new Promise(resolve => listener.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return { close };
}

/** Removes the socket of a process that was killed. The lock of the folder says that none runs. */
async function makeWay(path: string): Promise<void> {
  if (Buffer.byteLength(path) > SOCKET_PATH_MAX_BYTES)
    throw new Fault('data_folder_unusable', `The path ${path} is too long for a socket.`, {
      advice: 'Set BERTH_DATA_DIR to a folder with a shorter path, or BERTH_PROCESSES to 1.',
    });
  await rm(path, { force: true });
}
