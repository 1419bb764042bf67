// Runs the command of tar-chain.ts and streams its output.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { hasCode } from '../../kit/durable.ts';
import { reason } from '../../kit/fault.ts';
import { withTimeout } from '../../kit/wait.ts';
import type { BoxHost } from './box-host.ts';
import { StderrTail } from './stderr-tail.ts';
import { tarChain } from './tar-chain.ts';
import { findTool, TOOL_PATH } from './tools.ts';

const TAR_TIMEOUT_MS = 300_000;
/** tar's exit code when some files changed or could not be read. */
const EXIT_SOME_DIFFER = 1;

/** Passes a tar archive of these entries to `take`. Throws if tar or `take` fails. */
export async function readTar<T>(
  host: BoxHost,
  folder: string,
  names: readonly string[],
  take: (tar: Readable) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const { child, waitForExit, kill } = await start(host, folder, names, signal);
  const { stdout } = child;
  if (!stdout) throw new Error('tar was started without an output pipe');
  try {
    const result = await take(stdout);
    await waitForExit([0, EXIT_SOME_DIFFER]);
    return result;
  } catch (error) {
    kill();
    stdout.destroy();
    throw error;
  }
}

interface TarRun {
  readonly child: ChildProcess;
  /** Resolves when the process has ended with one of these exit codes. Rejects if it ended in any other way. */
  readonly waitForExit: (acceptedCodes: readonly number[]) => Promise<void>;
  /** Kills the process group. If only bwrap were killed while it sets up the jail, its child would wait forever. */
  readonly kill: () => void;
}

async function start(host: BoxHost, folder: string, names: readonly string[], signal: AbortSignal): Promise<TarRun> {
  const tar = findTool('tar');
  if (!tar) throw new Error('tar is not installed; install the package tar');
  const { form, limits } = host;
  const uid = form === 'root' ? host.requireOwnUid((await lstat(folder)).uid) : undefined;
  signal.throwIfAborted();
  const command = tarChain({ form, uid, folder, names, tar, fileBytes: limits.diskBytes });
  const child = spawn(command.file, command.args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: TOOL_PATH, LANG: 'C.UTF-8' },
    cwd: '/',
    // Creates a process group that holds the whole chain.
    detached: true,
  });
  const kill = (): void => killGroup(child);
  return { child, kill, waitForExit: createExitWaiter(child, kill, signal) };
}

function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error;
  }
}

/** Subscribes to the exit at once, so that an early exit is not missed. The returned function waits for the exit. */
function createExitWaiter(child: ChildProcess, kill: () => void, signal: AbortSignal): TarRun['waitForExit'] {
  if (!child.stderr) throw new Error('tar was started without a pipe for standard error');
  const stderr = new StderrTail(child.stderr);
  const exitEvent: Promise<unknown[]> = once(child, 'exit');
  const exitInTime = withTimeout(TAR_TIMEOUT_MS, 'tar to end', () => exitEvent, signal);
  exitInTime.catch(kill);
  return async acceptedCodes => {
    const [code, killSignal] = await exitInTime.catch(error => {
      throw new Error(`tar did not finish: ${reason(error)}`);
    });
    if (typeof code === 'number' && acceptedCodes.includes(code)) return;
    await stderr.whenClosed();
    throw new Error(
      `tar ${code === null ? `was killed by ${killSignal}` : `exited with code ${code}`}; standard error: ${stderr.text() || 'empty'}`,
    );
  };
}
