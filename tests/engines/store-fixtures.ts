// Shared by the store tests: temporary folders, a second PostgreSQL beside the embedded one, and process helpers.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Binaries, findBinaries } from '../../server/engines/store/embedded/find-binaries.ts';
import { type PostgresIdentity, postgresIdentity } from '../../server/engines/store/embedded/identity.ts';
import { PROGRAM_ENVIRONMENT, runProgram } from '../../server/engines/store/run-program.ts';
import { type Clock, systemClock } from '../../server/kit/clock.ts';
import type { Log, LogFields } from '../../server/kit/log.ts';
import type { Scope } from '../../server/kit/scope.ts';
import { Secret } from '../../server/kit/secret.ts';
import { pollUntil, withTimeout } from '../../server/kit/wait.ts';
import { claimFreePort } from '../harness/free-port.ts';

export const STEP_TIMEOUT_MS = 60_000;

/** Creates a folder that is removed when the scope closes, even if PostgreSQL ran as another user. */
export function makeTemporaryFolder(scope: Scope, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `berth-test-${name}-`));
  scope.defer(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface RecordingLog extends Log {
  readonly lines: ReadonlyArray<{ event: string; fields: LogFields | undefined }>;
}

export function recordingLog(): RecordingLog {
  const lines: Array<{ event: string; fields: LogFields | undefined }> = [];
  const add = (event: string, fields?: LogFields): void => void lines.push({ event, fields });
  const log: RecordingLog = { lines, debug: add, info: add, warn: add, error: add, with: () => log };
  return log;
}

export const clockAt = (time: Date): Clock => ({ ...systemClock, now: () => time });

export const isRunning = (pid: number): boolean => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !text.slice(text.lastIndexOf(')') + 2).startsWith('Z');
  } catch {
    return false;
  }
};

export const waitUntilGone = (pid: number): Promise<true> =>
  pollUntil(STEP_TIMEOUT_MS, `process ${pid} to end`, () => (isRunning(pid) ? undefined : true));

/** Sends the signal if the process still exists. It may have ended because its connection was closed. */
export function signalIfRunning(pid: number, signal: NodeJS.Signals): void {
  if (isRunning(pid)) process.kill(pid, signal);
}

/** Connections that PostgreSQL is serving now, found as child processes with a matching title. */
export const backendsOf = (postmaster: number): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => parentOf(pid) === postmaster && /^postgres: postgres postgres /.test(titleOf(pid)));

function parentOf(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return 0;
  }
}

function titleOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

export interface ForeignServer {
  readonly url: Secret;
  readonly major: number;
  readonly pid: number;
  /** Kills the postmaster with SIGKILL and then restarts it, as the operator's service manager does. */
  crash(): Promise<void>;
}

const PASSWORD = 'p@ss/word';

/**
 * Starts a PostgreSQL like that of an operator, which listens on TCP and requires a password. Uses version 15 if it is
 * installed, so that an older major version is tested as well.
 */
export async function startForeignServer(scope: Scope): Promise<ForeignServer> {
  const folder = makeTemporaryFolder(scope, 'foreign');
  const binaries = (await findBinaries({ major: 15 }).catch(() => undefined)) ?? (await findBinaries());
  if (!binaries) throw new Error('no PostgreSQL binaries were found; run npm ci or install PostgreSQL');
  const identity = await postgresIdentity(folder);
  await initForeign(folder, binaries, identity);
  const port = await claimFreePort();
  const serverProcess = { child: await startForeign(folder, port, binaries, identity) };
  scope.defer(() => end(serverProcess.child, 'SIGINT'));
  return {
    url: new Secret(`postgres://postgres:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/postgres`),
    major: binaries.major,
    get pid() {
      return serverProcess.child.pid ?? 0;
    },
    crash: async () => {
      await end(serverProcess.child, 'SIGKILL');
      serverProcess.child = await startForeign(folder, port, binaries, identity);
    },
  };
}

async function initForeign(folder: string, binaries: Binaries, identity: PostgresIdentity): Promise<void> {
  const initArguments = ['-D', join(folder, 'pg'), '-U', 'postgres', '-A', 'scram-sha-256', '-E', 'UTF8', '--no-sync'];
  const script = `printf %s '${PASSWORD}' > ${folder}/password && exec "$@"`;
  const initdb = [join(binaries.folder, 'initdb'), ...initArguments, `--pwfile=${folder}/password`];
  const { code, output } = await runProgram(identity.wrapCommand(['sh', '-c', script, 'sh', ...initdb]), {
    timeoutMs: 60_000,
  });
  if (code !== 0) throw new Error(output);
}

async function startForeign(
  folder: string,
  port: number,
  binaries: Binaries,
  identity: PostgresIdentity,
): Promise<ChildProcess> {
  const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`];
  const flags = ['shared_buffers=8MB', 'max_connections=40', 'lc_messages=C', ...settings].flatMap(it => ['-c', it]);
  for (let attempt = 0; ; attempt += 1) {
    const command = identity.wrapWithDeathSignal([
      join(binaries.folder, 'postgres'),
      '-D',
      join(folder, 'pg'),
      ...flags,
    ]);
    const child = spawnPlain(command);
    if (await waitUntilReady(child)) return child;
    if (attempt === 50) throw new Error('the second PostgreSQL did not start in 50 attempts');
    await systemClock.sleep(100);
  }
}

async function waitUntilReady(child: ChildProcess): Promise<boolean> {
  if (!child.stderr) throw new Error('the PostgreSQL process was started without a pipe for stderr');
  for await (const line of createInterface(child.stderr)) {
    if (!line.includes('ready to accept connections')) continue;
    child.stderr.resume();
    return true;
  }
  return false;
}

export function spawnPlain([program = '', ...args]: readonly string[]): ChildProcess {
  return spawn(program, args, { env: PROGRAM_ENVIRONMENT, stdio: ['ignore', 'ignore', 'pipe'], detached: true });
}

export async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  await withTimeout(STEP_TIMEOUT_MS, 'a child of the test to end', () => exited);
}

export interface Helper {
  readonly child: ChildProcess;
  /** Resolves to the next line that the process prints. */
  line(): Promise<string>;
}

/** Runs store-child.ts as a process that a test can kill. */
export function startHelper(scope: Scope, args: readonly string[], prefix: readonly string[] = []): Helper {
  const script = fileURLToPath(new URL('./store-child.ts', import.meta.url));
  const [program = '', ...rest] = [...prefix, process.execPath, script, ...args];
  const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
  scope.defer(() => end(child, 'SIGKILL'));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const line = async (): Promise<string> => String((await lines.next()).value);
  return { child, line: () => withTimeout(STEP_TIMEOUT_MS, `a line of ${args[0]}`, line) };
}
