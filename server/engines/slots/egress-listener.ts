// Gets the listening socket that listener.pl opened inside a box's network namespace, or opens one on loopback for a
// box without one. What is done with the connections is not known here.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, Server, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { within } from '../../kit/wait.ts';
import { EGRESS_PORT_IN_JAIL, reenter } from './chain.ts';
import type { Form } from './slots.ts';
import { TOOL_PATH } from './tools.ts';

/** Number of the system call, by `process.arch`; Perl knows only numbers. */
const SENDMSG: Readonly<Partial<Record<NodeJS.Architecture, number>>> = { x64: 46, arm64: 211 };
const HELPER = fileURLToPath(new URL('listener.pl', import.meta.url));

/** The helper's command line. */
export function listenerCommand(): readonly string[] {
  const sendmsg = SENDMSG[process.arch];
  if (sendmsg === undefined) throw new Error(`no boxes on ${process.arch}`);
  return ['perl', HELPER, String(EGRESS_PORT_IN_JAIL), String(sendmsg)];
}

const HANDED_OVER_WITHIN_MS = 10_000;
const LOOPBACK = '127.0.0.1';

/** Takes the socket from a child process in whose descendants the helper runs, and lets the helper go. */
export async function takeListener(child: ChildProcess, signal: AbortSignal): Promise<Server> {
  try {
    return await takeInTime(child, signal);
  } catch (error) {
    // A socket that comes too late would keep its network namespace for as long as we live.
    child.on('message', (_, handle) => (handle instanceof Server ? void handle.close() : undefined));
    throw error;
  }
}

function takeInTime(child: ChildProcess, signal: AbortSignal): Promise<Server> {
  return within(
    HANDED_OVER_WITHIN_MS,
    'the egress listener of a box',
    async waiting => {
      const [message, handle] = await nextMessage(child, waiting);
      if (!(handle instanceof Server)) throw new Error(`no egress listener: ${JSON.stringify(message)}`);
      child.send('taken', () => {});
      return refusingUntilUsed(handle);
    },
    signal,
  );
}

async function nextMessage(child: ChildProcess, signal: AbortSignal): Promise<readonly unknown[]> {
  const left = once(child, 'disconnect', { signal }).then(() => {
    throw new Error('the helper that opens the egress listener ended without a word');
  });
  return Promise.race([once(child, 'message', { signal }), left]);
}

/** A second listener for a box whose first belonged to a former process. */
export async function reopenListener(
  form: Form,
  pid: number,
  listener: readonly string[],
  signal: AbortSignal,
): Promise<Server> {
  const { file, args } = reenter(form, pid, listener);
  const stdio = ['ignore', 'ignore', 'ignore', 'ignore', 'ignore', 'ipc'] as const;
  const child = spawn(file, args, { stdio: [...stdio], env: { PATH: TOOL_PATH } });
  const exited = once(child, 'exit');
  try {
    return await takeListener(child, signal);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  } finally {
    await exited;
  }
}

/** `port` 0: any free one. */
export async function openLoopbackListener(port: number): Promise<Server> {
  const server = createServer();
  server.listen({ host: LOOPBACK, port });
  await once(server, 'listening');
  return refusingUntilUsed(server);
}

export function portOf(server: Server): number {
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the egress listener has no port');
  return address.port;
}

/** Until the egress proxy takes over, a connection is refused rather than left hanging for ever. */
function refusingUntilUsed(server: Server): Server {
  const refuse = (socket: Socket): void => void socket.destroy();
  server.on('connection', refuse);
  server.once('newListener', () => void server.off('connection', refuse));
  return server;
}
