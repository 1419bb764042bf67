// The real server as a child process of a test, with its own folder and port. This module sends requests to the server,
// kills and restarts it, and at the end stops it and checks that it has left nothing behind.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after } from 'node:test';
import type { ErrorBody } from '../../contract/common.ts';
import type { Session } from '../../contract/sessions.ts';
import { bundledProgram, CLOCK_PROGRAM, loadCommands, PROGRAM, WATCH_RESPONSES_URL } from './bundle.ts';
import { claimFreePort } from './free-port.ts';
import { type HttpResult, sendRequest } from './http.ts';
import { findServerLeftovers, findSessionLeftovers } from './leftovers.ts';
import type { OrdinaryUser } from './ordinary-user.ts';
import type { Pages } from './pages.ts';
import { keepProbeResults, prepareDataFolder } from './prepared-data-folder.ts';
import { eventually, WAIT_TIMEOUT_MS, withTimeLimit } from './until.ts';

export const CHECKOUT = join(import.meta.dirname, '../..');
const READY_TIMEOUT_MS = 90_000;
const STOP_TIMEOUT_MS = 90_000;
const LOG_LINES_SHOWN = 60;
const ORPHAN_CHECK_INTERVAL_MS = 1_000;
/** How long to wait for the last output of a process, which arrives shortly after its exit. */
const OUTPUT_TIMEOUT_MS = 10_000;
const HOUR_MS = 3_600_000;
/**
 * The interval of the checks for leftovers. It is not shorter, because each check reads files of every process on the
 * machine.
 */
const LEFTOVER_CHECK_INTERVAL_MS = 100;
const FINDINGS_SHOWN = 20;

export interface ServerOptions {
  /** Settings in addition to those of the harness. `undefined` removes a setting. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** An existing data folder, or an empty folder for a first start. The folder is not removed at the end. */
  readonly dataDir?: string;
  readonly port?: number;
  /** Pages that sessions may reach by address and by name. */
  readonly pages?: Pages;
  /** An ordinary user that runs the server. By default, the user that runs the test. */
  readonly user?: OrdinaryUser;
  /** With `test`, `advance` moves the clock. */
  readonly clock?: 'real' | 'test';
  /** How far the test clock is ahead at the start, in milliseconds. */
  readonly aheadMs?: number;
  /** The key for a data folder that was used before. The server prints a key only at the first start. */
  readonly key?: string;
  /**
   * The command of an installed release that is run instead of the checkout. It is read at each start, so that a test
   * can change it.
   */
  readonly installedRelease?: { command?: string };
  /**
   * For benchmarks and tests of an installed release: the responses of the server are not checked, and no prepared data
   * folder is used. Without `installedRelease`, the bundled server is run.
   */
  readonly isMeasured?: boolean;
  /**
   * For a server in a network namespace: the command prefix that runs commands there, and the addresses at which the
   * test reaches the server's listeners.
   */
  readonly namespaceAccess?: {
    readonly command: readonly string[];
    readonly url: string;
    readonly operatorUrl?: string;
  };
}

export interface ApiOptions {
  /** Objects are sent as JSON, strings and buffers unchanged. */
  readonly body?: unknown;
  readonly headers?: OutgoingHttpHeaders;
  /** The key to send instead of the server's first key. `null` sends no key. */
  readonly key?: string | null;
}

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A session as the create operation returns it to a key that may connect. */
export type CreatedSession = Session & { readonly connectUrl: string; readonly signingKey: string };

/** Starts a server. At the end of the test or test file, stops it and fails if anything is left. */
export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  if (process.env.BERTH_TEST_FRONTS) {
    const { mayHaveFronts, startBehindFronts } = await import('./behind-fronts.ts');
    if (mayHaveFronts(options))
      return startBehindFronts(
        options.env,
        (frontOptions, port) => new TestServer({ ...options, ...frontOptions }, port),
      );
  }
  const server = new TestServer(options, await claimFreePort());
  after(() => server.close());
  options.user?.cleanups.push(() => server.close());
  const isPrepared = mayBePrepared(options);
  if (isPrepared) await prepareDataFolder(server.dataDir);
  await server.start();
  if (isPrepared) keepProbeResults(server.dataDir);
  return server;
}

/**
 * The program that is started. For another user, this is the source in that user's copy of the checkout, which is not
 * bundled.
 */
const programOf = (user: OrdinaryUser | undefined): string => (user ? join(user.checkout, 'cli/berth.ts') : PROGRAM);

/** Whether a prepared data folder may be used. A test of the first start passes its own folder. */
const mayBePrepared = ({ dataDir, user, env, isMeasured }: ServerOptions): boolean =>
  !dataDir && !user && !isMeasured && env?.BERTH_ISOLATION === undefined;

/** The same values that `npm start` sets. */
const NODE_OPTIONS = ['--max-semi-space-size=4', '--heap-growing-percent=200', '--no-parallel-scavenge', '--expose-gc'];
const MALLOC_SETTINGS = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '131072' };

export class TestServer {
  readonly url: string;
  readonly dataDir: string;
  #key: string | undefined;
  #applicationId: string | undefined;
  readonly #options: ServerOptions;
  /** The file to which watch-responses.ts writes its findings about the server's responses. */
  readonly #findingsFile = join(tmpdir(), `berth-undescribed-${randomUUID()}`);
  readonly #lines: string[] = [];
  readonly #boxes = new Map<string, string>();
  #child: ChildProcess | undefined;
  #aheadMs = 0;
  #closing: Promise<void> | undefined;

  constructor(options: ServerOptions, port: number) {
    this.#options = options;
    this.#aheadMs = options.aheadMs ?? 0;
    this.url = options.namespaceAccess?.url ?? `http://127.0.0.1:${options.port ?? port}`;
    this.dataDir = options.dataDir ?? makeDataDir(options.user);
    this.#key = options.key;
  }

  /** The first key, which the server printed at its first start or the test passed in the options. */
  get key(): string {
    if (this.#key === undefined)
      throw new Error('this server has not printed a key; start it first, or pass a key in the options');
    return this.#key;
  }

  /** The application of the first key. */
  get applicationId(): string {
    if (this.#applicationId === undefined)
      throw new Error('this server has no application id yet; start it first with a key');
    return this.#applicationId;
  }

  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error('the server is not running');
    return this.#child.pid;
  }

  /** Returns all output lines of all processes of this server. */
  log(): readonly string[] {
    return this.#lines;
  }

  /** Returns the id of the session's box: the id of the session, or of the warm browser that the session claimed. */
  boxOf(session: string): string | undefined {
    return this.#boxes.get(session);
  }

  /** The session of each box. Warm browsers are not included. */
  get sessionOfBox(): ReadonlyMap<string, string> {
    return new Map([...this.#boxes].map(([session, box]) => [box, session]));
  }

  /** The environment for commands that run beside the server. */
  get env(): Record<string, string> {
    const { env = {}, pages, user } = this.#options;
    const settings: Record<string, string | undefined> = {
      PATH: process.env.PATH ?? '/usr/bin',
      HOME: user?.home ?? process.env.HOME ?? '/',
      TMPDIR: tmpdir(),
      // Compiled code is cached if the test runner sets a folder for it.
      NODE_COMPILE_CACHE:
        process.env.NODE_COMPILE_CACHE && (user ? join(user.home, 'compiled') : process.env.NODE_COMPILE_CACHE),
      ...MALLOC_SETTINGS,
      BERTH_LISTEN: this.url.slice('http://'.length),
      // The system picks a free port at each start. The server writes it to server.json in its data folder.
      BERTH_OPERATOR_LISTEN: '127.0.0.1:0',
      BERTH_DATA_DIR: this.dataDir,
      BERTH_LOG_LEVEL: 'info',
      // Warm browsers would count as leftovers. Tests that need them enable them.
      BERTH_WARM: '0',
      // Tests send more requests than people do. Tests of these limits set their own values.
      BERTH_READS_PER_MINUTE: '1000000',
      BERTH_WRITES_PER_MINUTE: '1000000',
      // `npm run test:slow` runs some suites a second time with headless-shell.
      BERTH_ENGINE: process.env.BERTH_TEST_ENGINE,
      ...pages?.settings,
      ...env,
    };
    return Object.fromEntries(Object.entries(settings).flatMap(([name, value]) => (value ? [[name, value]] : [])));
  }

  /** Starts the process and waits until it is ready for sessions, or with `serving` until it responds to requests. */
  async start(until: 'ready' | 'serving' = 'ready'): Promise<void> {
    const child = this.#spawn(await this.#program());
    this.#child = child;
    const earlyExit = waitForExit(child).then(code => {
      throw new Error(`the server exited with ${code} before it was ready:\n${this.#tail()}`);
    });
    earlyExit.catch(() => {});
    const readiness = eventually('the server to be ready', () => this.#isReady(until), Boolean, READY_TIMEOUT_MS);
    await Promise.race([readiness, earlyExit]).catch(error => {
      child.kill('SIGKILL');
      throw new Error(`${error instanceof Error ? error.message : error}\n${this.#tail()}`);
    });
    if (this.#key) await this.#readApplicationId();
  }

  /** Ends the process. Resolves with its exit code, or null if a signal ended it. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    const child = this.#child;
    if (!child || hasExited(child)) throw new Error('the server is not running');
    const exited = once(child, 'exit');
    child.kill(signal);
    const [code] = await withTimeLimit(`the server to end on ${signal}`, exited, STOP_TIMEOUT_MS);
    return typeof code === 'number' ? code : null;
  }

  /** Starts a new process with the same folder and address. Kills the server first if it is still running. */
  async restart(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.#child && !hasExited(this.#child)) await this.kill(signal);
    await this.start();
  }

  /**
   * Advances the test clock by an hour before each check for the result of an hourly task. A task that was running
   * while the clock was advanced has used the earlier time and runs again an hour later.
   */
  eventuallyHourly<T>(what: string, look: () => Promise<T> | T, satisfies?: (seen: T) => boolean): Promise<T> {
    const advanceAndLook = async (): Promise<T> => {
      await this.advance(HOUR_MS);
      return look();
    };
    return eventually(what, advanceAndLook, satisfies);
  }

  /** Advances the test clock. When this resolves, everything that became due has been started. */
  async advance(ms: number): Promise<void> {
    const child = this.#child;
    if (this.#options.clock !== 'test' || !child)
      throw new Error("only a running server with clock: 'test' can be advanced");
    const confirmation = once(child, 'message');
    child.send(ms);
    await withTimeLimit('the clock to move', confirmation);
    this.#aheadMs += ms;
  }

  /** Returns the time of the server's clock. */
  now(): Date {
    return new Date(Date.now() + this.#aheadMs);
  }

  api<Body = ErrorBody>(method: string, path: string, options: ApiOptions = {}): Promise<HttpResult<Body>> {
    const { body, headers = {}, key = this.#key ?? null } = options;
    const isRaw = body === undefined || typeof body === 'string' || Buffer.isBuffer(body);
    return sendRequest<Body>(`${this.url}${path}`, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: isRaw ? body : JSON.stringify(body),
    });
  }

  /**
   * The base URL of the operator's listener, which serves metrics and readiness. Throws if the server has not started.
   */
  get operatorUrl(): string {
    const record = JSON.parse(readFileSync(join(this.dataDir, 'server.json'), 'utf8'));
    if (record.pid !== this.pid) throw new Error('server.json was written by another process than this server');
    return this.#options.namespaceAccess?.operatorUrl ?? record.addresses.operatorUrl;
  }

  /** Reads `/metrics` or `/readyz` from the operator's listener. */
  async fetchFromOperator<Body = unknown>(path: '/metrics' | '/readyz'): Promise<HttpResult<Body>> {
    return sendRequest<Body>(`${this.operatorUrl}${path}`, {});
  }

  async createSession(body: object = {}, key = this.key): Promise<CreatedSession> {
    const response = await this.api<CreatedSession>('POST', '/v1/browsers/sessions', { body, key });
    if (response.status !== 200 && response.status !== 201)
      throw new Error(`the session was not created: ${response.status} ${response.text}`);
    return response.body;
  }

  async read(id: string): Promise<Session> {
    const response = await this.api<Session>('GET', `/v1/browsers/sessions/${id}`);
    if (response.status !== 200)
      throw new Error(`session ${id} could not be read: ${response.status} ${response.text}`);
    return response.body;
  }

  async release(id: string): Promise<Session> {
    const response = await this.api<Session>('POST', `/v1/browsers/sessions/${id}`, {
      body: { status: 'REQUEST_RELEASE' },
    });
    if (response.status !== 200)
      throw new Error(`session ${id} could not be released: ${response.status} ${response.text}`);
    return response.body;
  }

  /** Waits until the session has ended, and returns it. */
  waitUntilEnded(id: string, withinMs = WAIT_TIMEOUT_MS): Promise<Session> {
    return eventually(
      `session ${id} to end`,
      () => this.read(id),
      session => session.endedAt !== undefined,
      withinMs,
    );
  }

  /**
   * Waits until nothing is left of any session except those in `running`. Fails after a time limit. `running` may be a
   * function, which is called at each check.
   */
  async waitUntilSettled(running: readonly string[] | (() => readonly string[]) = []): Promise<void> {
    const look = async (): Promise<string[]> => {
      const keep = new Set(typeof running === 'function' ? running() : running);
      return [...findSessionLeftovers(this.dataDir, keep), ...(await this.#describeOpenSessions(keep))];
    };
    await waitUntilNothingLeft('nothing to be left of the sessions', look).catch(error => {
      throw new Error(`${error instanceof Error ? error.message : error}\n${this.#tail()}`);
    });
  }

  /**
   * Runs a command on the data folder, for tests that are not about the command itself. If possible, the command runs
   * in the process of the test, which avoids the start of another process. Otherwise it runs in a process of its own,
   * as with `berth`.
   */
  operate(...args: string[]): Promise<CommandResult> {
    const { user, installedRelease, namespaceAccess } = this.#options;
    return user || installedRelease || namespaceAccess ? this.berth(...args) : runInProcess(args, this.env);
  }

  /** Runs `berth` with this server's settings, as its user. */
  berth(...args: string[]): Promise<CommandResult> {
    const { user, installedRelease, namespaceAccess } = this.#options;
    return runBerth(args, this.env, user, '', installedRelease?.command, namespaceAccess?.command);
  }

  /** Ends all sessions and the server, checks for leftovers and removes the folder. Called after the test. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      if (this.#child && !hasExited(this.#child)) await this.kill('SIGINT');
      await this.#sweepAfterKill();
      this.#assertResponsesDescribed();
      const look = (): string[] => [...findSessionLeftovers(this.dataDir), ...findServerLeftovers(this.dataDir)];
      await waitUntilNothingLeft('nothing to be left of the server', look);
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : error}\n${this.#tail()}`);
    } finally {
      this.#child?.kill('SIGKILL');
      rmSync(this.#findingsFile, { force: true });
      if (!this.#options.dataDir) rmSync(dirname(this.dataDir), { recursive: true, force: true, maxRetries: 5 });
    }
  }

  /** Fails unless every response of the server matched the OpenAPI document. */
  #assertResponsesDescribed(): void {
    const findings = existsSync(this.#findingsFile) ? readFileSync(this.#findingsFile, 'utf8').trim().split('\n') : [];
    const distinctFindings = [...new Set(findings)];
    if (distinctFindings.length === 0) return;
    const shownFindings = distinctFindings.slice(0, FINDINGS_SHOWN).join('\n');
    throw new Error(
      `${distinctFindings.length} answers are not as contract/generated/openapi.yaml describes them:\n${shownFindings}`,
    );
  }

  /**
   * Runs `berth stop` unless the last process exited with code 0, because the browsers of a killed server keep running.
   */
  async #sweepAfterKill(): Promise<void> {
    if (this.#child?.signalCode === null && this.#child.exitCode === 0) return;
    const { code, stderr } = await this.berth('stop');
    if (code !== 0) throw new Error(`berth stop failed with ${code}: ${stderr}`);
  }

  async #describeOpenSessions(keep: ReadonlySet<string>): Promise<string[]> {
    const response = await this.api<Session[]>('GET', '/v1/browsers/sessions?status=PENDING,RUNNING');
    if (response.status !== 200) return [`the list of sessions could not be read: ${response.text}`];
    return response.body.filter(({ id }) => !keep.has(id)).map(({ id, status }) => `session ${id} is ${status}`);
  }

  async #program(): Promise<string> {
    const { user, installedRelease, isMeasured } = this.#options;
    if (isMeasured && !installedRelease) return await bundledProgram();
    return installedRelease?.command ?? programOf(user);
  }

  #spawn(program: string): ChildProcess {
    const { clock, user, isMeasured, namespaceAccess } = this.#options;
    const args =
      clock === 'test'
        ? [user ? join(user.checkout, 'tests/harness/serve-with-clock.ts') : CLOCK_PROGRAM, `--ahead=${this.#aheadMs}`]
        : [program, 'serve'];
    // Another user may not be able to read this checkout, from which the check of responses is loaded.
    const watchArgs =
      user || isMeasured ? [] : ['--import', `${WATCH_RESPONSES_URL}?into=${encodeURIComponent(this.#findingsFile)}`];
    const [file = '', ...rest] = [
      ...(namespaceAccess?.command ?? []),
      user?.node ?? process.execPath,
      ...NODE_OPTIONS,
      ...watchArgs,
      ...args,
    ];
    const child = spawn(file, rest, {
      cwd: user?.checkout ?? CHECKOUT,
      env: this.env,
      stdio: ['ignore', 'pipe', 'pipe', ...(clock === 'test' ? (['ipc'] as const) : [])],
      ...(user ? { uid: user.uid, gid: user.gid } : {}),
    });
    for (const stream of [child.stdout, child.stderr])
      if (stream) createInterface(stream).on('line', line => this.#readLine(line));
    endWithThisProcess(child, this.env, namespaceAccess?.command);
    return child;
  }

  #readLine(line: string): void {
    this.#lines.push(line);
    const [, session, box] = /"sessionId":"([^"]+)","box":"([^"]+)".*"event":"session.boxed"/.exec(line) ?? [];
    if (session && box) this.#boxes.set(session, box);
    this.#key ??= /^ {2}key\s+(bak_\S+)$/.exec(line)?.[1];
  }

  async #isReady(until: 'ready' | 'serving'): Promise<boolean> {
    const pendingResponse =
      until === 'ready' ? this.fetchFromOperator('/readyz') : sendRequest(`${this.url}/healthz`, {});
    const response = await pendingResponse.catch(() => undefined);
    return (
      response?.status === 200 &&
      (this.#key !== undefined || this.#lines.some(line => line.startsWith('Berth listens')))
    );
  }

  async #readApplicationId(): Promise<void> {
    const response = await this.api<Array<{ id: string }>>('GET', '/v1/projects');
    this.#applicationId = response.status === 200 ? response.body[0]?.id : this.#applicationId;
  }

  /** Returns the last log lines, without those that every request writes. */
  #tail(): string {
    return this.#lines
      .filter(line => !/"event":"\w+\.(begin|end)"/.test(line))
      .slice(-LOG_LINES_SHOWN)
      .join('\n');
  }
}

async function runInProcess(args: readonly string[], env: Readonly<Record<string, string>>): Promise<CommandResult> {
  const { runBerth } = await loadCommands();
  const output = { stdout: '', stderr: '' };
  const terminal = {
    env,
    print: (text: string) => {
      output.stdout += text;
    },
    say: (text: string) => {
      output.stderr += text;
    },
    input: async () => '',
  };
  const code = await withTimeLimit(`berth ${args.join(' ')} to end`, runBerth(args, terminal), STOP_TIMEOUT_MS);
  return { code, ...output };
}

export function runBerth(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  user?: OrdinaryUser,
  input = '',
  command?: string,
  commandPrefix: readonly string[] = [],
): Promise<CommandResult> {
  const nodeCommand = [user?.node ?? process.execPath, command ?? programOf(user)];
  const [file = '', ...rest] = [...commandPrefix, ...nodeCommand, ...args];
  const child = spawn(file, rest, {
    cwd: user?.checkout ?? CHECKOUT,
    env: { ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(user ? { uid: user.uid, gid: user.gid } : {}),
  });
  child.stdin.on('error', () => {}); // most commands end without reading their input
  child.stdin.end(input);
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', chunk => {
    output.stdout += chunk;
  });
  child.stderr.on('data', chunk => {
    output.stderr += chunk;
  });
  const pendingResult = once(child, 'close').then(([code]) => ({
    code: typeof code === 'number' ? code : null,
    ...output,
  }));
  return withTimeLimit(`berth ${args.join(' ')} to end`, pendingResult, STOP_TIMEOUT_MS).finally(() =>
    child.kill('SIGKILL'),
  );
}

const waitUntilNothingLeft = async (what: string, look: () => string[] | Promise<string[]>): Promise<void> => {
  await eventually(what, look, left => left.length === 0, WAIT_TIMEOUT_MS, LEFTOVER_CHECK_INTERVAL_MS);
};

/** Ends the server and its browsers when the test process exits. */
function endWithThisProcess(
  child: ChildProcess,
  env: Record<string, string>,
  commandPrefix: readonly string[] = [],
): void {
  exitWithRunner();
  const end = (): void => {
    child.kill('SIGKILL');
    const [file = '', ...args] = [...commandPrefix, process.execPath, PROGRAM, 'stop'];
    spawnSync(file, args, { env, timeout: STOP_TIMEOUT_MS });
  };
  process.once('exit', end);
  child.once('exit', () => process.off('exit', end));
}

let isExitWatched = false;

/** Turns a signal, or the end of the runner, into a normal exit, so that exit handlers run. */
function exitWithRunner(): void {
  if (isExitWatched) return;
  isExitWatched = true;
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
  const runnerPid = process.ppid;
  setInterval(() => process.ppid === runnerPid || process.exit(1), ORPHAN_CHECK_INTERVAL_MS).unref();
}

/** Resolves with the exit code when the output, which arrives separately, has been read. */
async function waitForExit(child: ChildProcess): Promise<unknown> {
  const closed = once(child, 'close');
  const [code] = await once(child, 'exit');
  await withTimeLimit('the last output of the server', closed, OUTPUT_TIMEOUT_MS).catch(() => {});
  return code;
}

const hasExited = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

function makeDataDir(user: OrdinaryUser | undefined): string {
  const folder = mkdtempSync(join(user?.home ?? tmpdir(), 'berth-acceptance-'));
  const dataDir = join(folder, 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  if (user) for (const path of [folder, dataDir]) chownSync(path, user.uid, user.gid);
  return dataDir;
}
