// Runs a short program to completion and returns its output. Long-running programs are run by embedded/postmaster.ts.
import { spawn } from 'node:child_process';
import { Fault } from '../../kit/fault.ts';
import { withTimeout } from '../../kit/wait.ts';

/**
 * The environment of every program that this folder starts. It contains none of the server's variables, so no secret of
 * the server is visible in /proc/PID/environ of PostgreSQL, and no PG* or LD_* variable set by the operator affects the
 * programs.
 */
export const PROGRAM_ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C.UTF-8',
};

const OUTPUT_MAX_CHARACTERS = 16_384;

export interface ProgramOptions {
  readonly timeoutMs: number;
  /** Passed to the program as descriptor 3. */
  readonly descriptor?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface ProgramResult {
  readonly code: number | null;
  /** The last part of the output to stdout and stderr. */
  readonly output: string;
}

export async function runProgram(command: readonly string[], options: ProgramOptions): Promise<ProgramResult> {
  const [program = '', ...args] = command;
  return withTimeout(
    options.timeoutMs,
    program,
    signal => run(program, args, options.descriptor, signal),
    options.signal,
  );
}

function run(
  program: string,
  args: string[],
  descriptor: number | undefined,
  signal: AbortSignal,
): Promise<ProgramResult> {
  const { promise, resolve, reject } = Promise.withResolvers<ProgramResult>();
  const child = spawn(program, args, {
    env: PROGRAM_ENVIRONMENT,
    stdio: ['ignore', 'pipe', 'pipe', ...(descriptor === undefined ? [] : [descriptor])],
    signal,
    killSignal: 'SIGKILL',
  });
  let output = '';
  const collect = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-OUTPUT_MAX_CHARACTERS);
  };
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  child.once('error', (error: NodeJS.ErrnoException) =>
    reject(error.code === 'ENOENT' ? missingProgramFault(program) : error),
  );
  child.once('close', code => resolve({ code, output: output.trim() }));
  return promise;
}

const missingProgramFault = (program: string): Fault =>
  new Fault('database_binaries_missing', `The program ${program} is not installed.`, {
    advice: 'Install util-linux, which contains flock, setpriv and unshare (Debian: apt install util-linux).',
  });
