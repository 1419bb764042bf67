// Receives the listening socket that listener.pl opened inside a box's network namespace, or opens one on loopback for
// a box without a jail.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, Server, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { withTimeout } from '../../kit/wait.ts';
import { EGRESS_PORT_IN_JAIL, enterNamespacesCommand } from './chain.ts';
import type { Form } from './slots.ts';
import { TOOL_PATH } from './tools.ts';

/** The number of the system call sendmsg, by `process.arch`, because Perl's `syscall` takes numbers. */
const SENDMSG_NUMBERS: Readonly<Partial<Record<NodeJS.Architecture, number>>> = { x64: 46, arm64: 211 };
const LISTENER_SCRIPT = fileURLToPath(new URL('listener.pl', import.meta.url));

/** The command that runs listener.pl. */
export function listenerCommand(): readonly string[] {
  const sendmsgNumber = SENDMSG_NUMBERS[process.arch];
  if (sendmsgNumber === undefined) throw new Error(`boxes require an x64 or arm64 processor, not ${process.arch}`);
  return ['perl', LISTENER_SCRIPT, String(EGRESS_PORT_IN_JAIL), String(sendmsgNumber)];
}

const HANDOVER_TIMEOUT_MS = 10_000;
const LOOPBACK = '127.0.0.1';

/**
 * Receives the socket over the IPC channel of a child process, one of whose descendants runs listener.pl. listener.pl
 * exits when it receives the reply `taken`.
 */
export async function takeListener(child: ChildProcess, signal: AbortSignal): Promise<Server> {
  try {
    return await takeBeforeTimeout(child, signal);
  } catch (error) {
    // A socket that arrives too late is closed. It would otherwise keep its network namespace for the lifetime of this
    // process.
    child.on('message', (_, handle) => (handle instanceof Server ? void handle.close() : undefined));
    throw error;
  }
}

function takeBeforeTimeout(child: ChildProcess, signal: AbortSignal): Promise<Server> {
  return withTimeout(
    HANDOVER_TIMEOUT_MS,
    'the egress listener of a box',
    async waitSignal => {
      const [message, handle] = await nextMessage(child, waitSignal);
      if (!(handle instanceof Server))
        throw new Error(`listener.pl sent ${JSON.stringify(message)} instead of an egress listener`);
      child.send('taken', () => {});
      return refuseUntilTaken(handle);
    },
    signal,
  );
}

async function nextMessage(child: ChildProcess, signal: AbortSignal): Promise<readonly unknown[]> {
  const disconnection = once(child, 'disconnect', { signal }).then(() => {
    throw new Error('listener.pl exited without handing over the egress listener');
  });
  return Promise.race([once(child, 'message', { signal }), disconnection]);
}

/** Opens a listener for an adopted box, whose first listener belonged to an earlier server process. */
export async function reopenListener(
  form: Form,
  pid: number,
  listener: readonly string[],
  signal: AbortSignal,
): Promise<Server> {
  const { file, args } = enterNamespacesCommand(form, pid, listener);
  const stdio = ['ignore', 'ignore', 'ignore', 'ignore', 'ignore', 'ipc'] as const;
  const child = spawn(file, args, { stdio: [...stdio], env: { PATH: TOOL_PATH } });
  const exitEvent = once(child, 'exit');
  try {
    return await takeListener(child, signal);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  } finally {
    await exitEvent;
  }
}

/** Opens a listener on loopback. If `port` is 0, uses any free port. */
export async function openLoopbackListener(port: number): Promise<Server> {
  const server = createServer();
  server.listen({ host: LOOPBACK, port, exclusive: true });
  await once(server, 'listening');
  return refuseUntilTaken(server);
}

export function portOf(server: Server): number {
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the egress listener has no port');
  return address.port;
}

/**
 * Closes incoming connections at once instead of leaving them waiting, until the egress proxy starts to handle
 * connections.
 */
function refuseUntilTaken(server: Server): Server {
  const refuse = (socket: Socket): void => void socket.destroy();
  server.on('connection', refuse);
  server.once('newListener', () => void server.off('connection', refuse));
  return server;
}
