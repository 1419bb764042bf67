// Runs the tar of tar-chain.ts: a folder becomes a stream.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { isCode } from '../../kit/durable.ts';
import { reason } from '../../kit/fault.ts';
import { within } from '../../kit/wait.ts';
import type { Ground } from './ground.ts';
import { StderrTail } from './stderr-tail.ts';
import { tarChain } from './tar-chain.ts';
import { findTool, TOOL_PATH } from './tools.ts';

const WITHIN_MS = 300_000;
/** tar: some files changed or could not be read while it went on. */
const EXIT_SOME_DIFFER = 1;

/** Hands the tar of these entries of the folder to `take`; both have to succeed. */
export async function readTar<T>(
  ground: Ground,
  folder: string,
  names: readonly string[],
  take: (tar: Readable) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const { child, ended, kill } = await start(ground, folder, names, signal);
  const { stdout } = child;
  if (!stdout) throw new Error('tar has no output');
  try {
    const taken = await take(stdout);
    await ended([0, EXIT_SOME_DIFFER]);
    return taken;
  } catch (error) {
    kill();
    stdout.destroy();
    throw error;
  }
}

interface Run {
  readonly child: ChildProcess;
  /** Rejects unless it ends with one of these codes. */
  readonly ended: (fine: readonly number[]) => Promise<void>;
  /** All of its processes: a bwrap that is killed alone while it sets up the jail leaves its child waiting for ever. */
  readonly kill: () => void;
}

async function start(ground: Ground, folder: string, names: readonly string[], signal: AbortSignal): Promise<Run> {
  const tar = findTool('tar');
  if (!tar) throw new Error('tar is not installed');
  const { form, limits } = ground;
  const uid = form === 'root' ? ground.demandOwnUid((await lstat(folder)).uid) : undefined;
  signal.throwIfAborted();
  const command = tarChain({ form, uid, folder, names, tar, fileBytes: limits.diskBytes });
  const child = spawn(command.file, command.args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: TOOL_PATH, LANG: 'C.UTF-8' },
    cwd: '/',
    // A process group of its own, which all of the chain stays in.
    detached: true,
  });
  const kill = (): void => killGroup(child);
  return { child, kill, ended: outcomeOf(child, kill, signal) };
}

function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (!isCode(error, 'ESRCH')) throw error;
  }
}

/** Listens from the first moment on, and tells when asked. */
function outcomeOf(child: ChildProcess, kill: () => void, signal: AbortSignal): Run['ended'] {
  if (!child.stderr) throw new Error('tar has no error output');
  const said = new StderrTail(child.stderr);
  const exited: Promise<unknown[]> = once(child, 'exit');
  const inTime = within(WITHIN_MS, 'tar to end', () => exited, signal);
  inTime.catch(kill);
  return async fine => {
    const [code, killedBy] = await inTime.catch(error => {
      throw new Error(`tar was stopped: ${reason(error)}`);
    });
    if (typeof code === 'number' && fine.includes(code)) return;
    await said.ended();
    throw new Error(`tar ended with ${code ?? killedBy}, and said: ${said.text() || 'nothing'}`);
  };
}
