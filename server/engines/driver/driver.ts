// Drives browsers for MCP tools and for operations. Playwright runs in threads of its own and connects to a session as
// any client does. Page content is parsed in these threads and not in the main thread. A thread that does not respond
// in time is replaced. The next command then connects again, and only references from earlier snapshots are lost.
import { Worker } from 'node:worker_threads';
import { compiledCodeEnv } from '../../kit/compiled-code.ts';
import { reason } from '../../kit/fault.ts';
import type { Log } from '../../kit/log.ts';
import type { Closeable } from '../../kit/scope.ts';
import {
  type Command,
  type CommandMessage,
  type CommandResult,
  type DisconnectMessage,
  DriveFailed,
  type Helper,
  type HelpReply,
  type ThreadMessage,
} from './command.ts';

export interface DriverLimits {
  /** Maximum number of threads. A thread with Playwright uses about 95 MiB. */
  readonly threads: number;
  /** Maximum number of queued commands per session. */
  readonly waitingPerSessionMax: number;
  readonly heapMb: number;
  /**
   * A command that takes longer fails, and its session gets a new connection. Most commands have a shorter limit of
   * their own in perform.ts, capture.ts or steps.ts.
   */
  readonly commandMs: number;
  /** A connection without commands is closed after this time. */
  readonly idleMs: number;
  /** A thread without connections ends after this time. Starting a thread takes longer than most commands. */
  readonly threadIdleMs: number;
}

const DRIVER_LIMITS: DriverLimits = {
  threads: 2,
  waitingPerSessionMax: 16,
  heapMb: 512,
  commandMs: 150_000,
  idleMs: 300_000,
  threadIdleMs: 60_000,
};

const SESSION_ENDED_MESSAGE = 'The session has ended.';
const THREAD_REPLACED_MESSAGE =
  'The command failed, because the browser driver of the service was restarted. Take a new snapshot and repeat the command.';
/**
 * If a thread has not stopped a command this long after the command's time limit, the thread is considered blocked and
 * is ended.
 */
const BLOCKED_THREAD_TIMEOUT_MS = 15_000;

interface PendingCommand {
  readonly session: string;
  readonly response: PromiseWithResolvers<CommandResult>;
  readonly help: Helper;
  readonly timer: NodeJS.Timeout;
}

interface Thread {
  readonly worker: Worker;
  readonly sessions: Set<string>;
  readonly pendingCommands: Map<number, PendingCommand>;
  /** The timer that ends the thread. Set while the thread has no sessions. */
  idleTimer: NodeJS.Timeout | undefined;
}

interface DrivenSession {
  readonly thread: Thread;
  /** Resolves when the last queued command is done. */
  lastCommand: Promise<unknown>;
  waitingCount: number;
  idleTimer: NodeJS.Timeout | undefined;
}

/** The session in whose browser a command runs. */
export interface Target {
  readonly session: string;
  /** The WebSocket address of the session's browser. */
  readonly address: string;
}

export class Driver implements Closeable {
  readonly #log: Log;
  readonly #limits: DriverLimits;
  readonly #threads = new Set<Thread>();
  readonly #drivenSessions = new Map<string, DrivenSession>();
  #nextId = 0;
  #isClosed = false;

  constructor(log: Log, limits: Partial<DriverLimits> = {}) {
    this.#log = log;
    this.#limits = { ...DRIVER_LIMITS, ...limits };
  }

  /**
   * Runs a command in the session's browser. `help` performs the parts of steps that must be done outside the driver.
   * Throws DriveFailed.
   */
  async run(target: Target, command: Command, help: Helper = noHelp): Promise<CommandResult> {
    if (this.#isClosed) throw new DriveFailed('connection', 'The service is stopping.');
    const drivenSession = this.#drivenSessionOf(target.session);
    if (drivenSession.waitingCount >= this.#limits.waitingPerSessionMax)
      throw new DriveFailed(
        'too_many',
        `${this.#limits.waitingPerSessionMax} commands of this session are already waiting. Wait until one has finished.`,
      );
    drivenSession.waitingCount += 1;
    clearTimeout(drivenSession.idleTimer);
    const previousCommand = drivenSession.lastCommand;
    const currentCommand = previousCommand
      .catch(() => {})
      .then(() => this.#send(drivenSession.thread, target, command, help));
    drivenSession.lastCommand = currentCommand;
    try {
      return await currentCommand;
    } finally {
      drivenSession.waitingCount -= 1;
      // If the thread was replaced or the connection was closed, this entry is no longer in use and needs no idle
      // timer.
      const isCurrent = this.#drivenSessions.get(target.session) === drivenSession;
      if (drivenSession.waitingCount === 0 && isCurrent) drivenSession.idleTimer = this.#startIdleTimer(target.session);
    }
  }

  /** Closes the connection to a session. */
  forget(session: string): void {
    const drivenSession = this.#drivenSessions.get(session);
    if (!drivenSession) return;
    clearTimeout(drivenSession.idleTimer);
    this.#drivenSessions.delete(session);
    drivenSession.thread.sessions.delete(session);
    const disconnectMessage: DisconnectMessage = { sessionToDisconnect: session };
    drivenSession.thread.worker.postMessage(disconnectMessage);
    if (drivenSession.thread.sessions.size > 0) return;
    // A page that hangs leaves its command pending. The thread is then ended, so that no other session uses it.
    if (drivenSession.thread.pendingCommands.size > 0)
      void this.#endThread(drivenSession.thread, 'connection', SESSION_ENDED_MESSAGE);
    else this.#endLater(drivenSession.thread);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { idleTimer } of this.#drivenSessions.values()) clearTimeout(idleTimer);
    await Promise.all(
      [...this.#threads].map(thread => this.#endThread(thread, 'connection', 'The service is stopping.')),
    );
  }

  #drivenSessionOf(session: string): DrivenSession {
    const existingSession = this.#drivenSessions.get(session);
    if (existingSession) return existingSession;
    const thread = this.#chooseThread();
    clearTimeout(thread.idleTimer);
    thread.sessions.add(session);
    const drivenSession: DrivenSession = {
      thread,
      lastCommand: Promise.resolve(),
      waitingCount: 0,
      idleTimer: undefined,
    };
    this.#drivenSessions.set(session, drivenSession);
    return drivenSession;
  }

  /**
   * Returns a thread without sessions, or else a new thread if the limit allows it, or else the thread with the fewest
   * sessions.
   */
  #chooseThread(): Thread {
    const [leastBusy] = [...this.#threads].sort((a, b) => a.sessions.size - b.sessions.size);
    if (leastBusy && (leastBusy.sessions.size === 0 || this.#threads.size >= this.#limits.threads)) return leastBusy;
    return this.#startThread();
  }

  #startThread(): Thread {
    const { heapMb } = this.#limits;
    const worker = new Worker(new URL('./driver-thread.ts', import.meta.url), {
      name: 'driver',
      // Playwright reads options from the environment, so it must not get the server's environment.
      env: { NODE_ENV: 'production', ...compiledCodeEnv() },
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
    });
    const thread: Thread = { worker, sessions: new Set(), pendingCommands: new Map(), idleTimer: undefined };
    worker.on('message', (message: ThreadMessage) => this.#onMessage(thread, message));
    worker.on('error', error => {
      this.#log.warn('driver.thread_failed', { error });
      void this.#endThread(
        thread,
        'died',
        'The command failed, because the browser driver of the service crashed. Take a new snapshot and repeat the command.',
      );
    });
    this.#threads.add(thread);
    return thread;
  }

  #send(thread: Thread, { session, address }: Target, command: Command, help: Helper): Promise<CommandResult> {
    if (!this.#threads.has(thread)) throw new DriveFailed('died', THREAD_REPLACED_MESSAGE);
    const id = this.#nextId++;
    const response = Promise.withResolvers<CommandResult>();
    const timer = setTimeout(() => {
      this.#log.warn('driver.command_too_long', { sessionId: session, command: command.do });
      thread.pendingCommands.delete(id);
      response.reject(new DriveFailed('too_long', `The command took longer than ${this.#limits.commandMs / 1000} s.`));
      void this.#endThread(thread, 'died', THREAD_REPLACED_MESSAGE);
    }, this.#limits.commandMs + BLOCKED_THREAD_TIMEOUT_MS);
    thread.pendingCommands.set(id, { session, response, help, timer });
    const commandMessage: CommandMessage = { id, session, address, command, limitMs: this.#limits.commandMs };
    thread.worker.postMessage(commandMessage);
    return response.promise;
  }

  #onMessage(thread: Thread, message: ThreadMessage): void {
    if ('closed' in message) {
      const drivenSession = this.#drivenSessions.get(message.closed);
      if (drivenSession?.thread === thread && drivenSession.waitingCount === 0) this.forget(message.closed);
      return;
    }
    if ('helpId' in message) return void this.#giveHelp(thread, message);
    const pendingCommand = thread.pendingCommands.get(message.id);
    if (!pendingCommand) return;
    thread.pendingCommands.delete(message.id);
    clearTimeout(pendingCommand.timer);
    if ('result' in message) pendingCommand.response.resolve(message.result);
    else pendingCommand.response.reject(new DriveFailed(message.failed, message.message, message.details));
  }

  async #giveHelp(
    thread: Thread,
    { helpId, commandId, help }: Extract<ThreadMessage, { helpId: number }>,
  ): Promise<void> {
    const reply = (fields: Omit<HelpReply, 'reply'> = {}): void =>
      thread.worker.postMessage({ reply: helpId, ...fields });
    try {
      await (thread.pendingCommands.get(commandId)?.help ?? noHelp)(help);
      reply();
    } catch (error) {
      if (!(error instanceof DriveFailed)) this.#log.error('driver.help_failed', { reason: reason(error) });
      const { why, message, details } = error instanceof DriveFailed ? error : UNEXPECTED_FAILURE;
      reply({ failed: { why, message, details } });
    }
  }

  #startIdleTimer(session: string): NodeJS.Timeout {
    return setTimeout(() => this.forget(session), this.#limits.idleMs).unref();
  }

  #endLater(thread: Thread): void {
    const end = (): void => void this.#endThread(thread, 'connection', SESSION_ENDED_MESSAGE);
    thread.idleTimer = setTimeout(end, this.#limits.threadIdleMs).unref();
  }

  async #endThread(thread: Thread, why: DriveFailed['why'], message: string): Promise<void> {
    this.#threads.delete(thread);
    clearTimeout(thread.idleTimer);
    for (const session of thread.sessions) {
      clearTimeout(this.#drivenSessions.get(session)?.idleTimer);
      this.#drivenSessions.delete(session);
    }
    for (const { response, timer } of thread.pendingCommands.values()) {
      clearTimeout(timer);
      response.reject(new DriveFailed(why, message));
    }
    thread.pendingCommands.clear();
    await thread.worker.terminate();
  }
}

const noHelp: Helper = async () => {
  throw new DriveFailed('command', 'This command cannot type credentials.');
};

const UNEXPECTED_FAILURE = new DriveFailed(
  'command',
  'The service failed unexpectedly while it typed a credential or hid the fields of the page.',
);
