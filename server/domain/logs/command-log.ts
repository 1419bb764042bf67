// Logs the commands of clients. A message that is forwarded is only queued here; it is parsed in a later turn of the
// event loop. Commands beyond a rate that no reasonable client reaches are counted, but not logged.

import type { Clock } from '../../kit/clock.ts';
import { parseJson } from '../../kit/foreign.ts';
import { guardListener } from '../../kit/guard.ts';
import { isObject } from '../../kit/json.ts';
import type { CommandTap, ObservedCommand } from '../sessions/browser-host.ts';
import { commandParams, commandResult, LOGGED_COMMANDS, mayReturnSecrets } from './command-entries.ts';
import type { LogEntry } from './entry.ts';
import { COMMAND_BURST_MAX, COMMANDS_PER_SECOND } from './limits.ts';
import type { SessionLog } from './session-log.ts';
import { rememberTyped, TYPING_COMMANDS } from './typed-commands.ts';
import { textAt, type UntrustedObject } from './values.ts';

/** Longer messages are not parsed; their length is logged. */
const COMMAND_BYTES_MAX = 64 * 1024;
const RESPONSE_BYTES_MAX = 16 * 1024;
/** Maximum number of messages that are parsed in one turn of the event loop. */
const BATCH_MAX = 100;
/**
 * Maximum number of queued messages. If the queue is full, adding a message causes the oldest one to be parsed. The
 * queue is short, because all queued messages are parsed in one turn when an event from a page arrives.
 */
const QUEUE_MAX = 200;
/**
 * Maximum length of an expression that is scanned for typed text even if a limit of the log prevents it from being
 * logged. Expressions that type text are shorter. Longer ones are libraries that a client injects.
 */
const UNLOGGED_EXPRESSION_BYTES_MAX = 8 * 1024;
const EMPTY_BUFFER = Buffer.alloc(0);

export interface CommandLogParts {
  readonly log: SessionLog;
  /** Returns the page number of a target that is a page or belongs to one. */
  readonly pageOf: (targetId: string) => number | undefined;
  readonly clock: Clock;
}

interface LoggedCommand {
  readonly method: string;
  readonly targetIds: readonly string[];
  /** Undefined after the message has been parsed. */
  message: Buffer | undefined;
  readonly at: number;
  isSecret: boolean;
  loggedParams: LogEntry['params'] | undefined;
}

export class CommandLog implements CommandTap {
  readonly methods = LOGGED_COMMANDS;
  readonly #parts: CommandLogParts;
  readonly #queue: Array<() => void> = [];
  readonly #unansweredCommands = new Set<LoggedCommand>();
  #isScheduled = false;
  #tokens = COMMAND_BURST_MAX;
  #tokensUpdatedMs: number;

  constructor(parts: CommandLogParts) {
    this.#parts = parts;
    this.#tokensUpdatedMs = parts.clock.monotonicMs();
    // On a busy machine, a page's event that contains typed text can arrive in the same turn as the command that typed
    // the text. The command must be parsed first.
    parts.log.parseQueuedCommands = () => this.#runDeferred(this.#queue.length);
  }

  onCommand(observed: ObservedCommand): ((response: Buffer) => void) | undefined {
    const { log, clock } = this.#parts;
    const isLogged = log.canAccept('command') && (this.#takeToken() || log.drop('command', 'rate'));
    if (!isLogged && !mayType(observed)) return undefined;
    const pendingCommand: LoggedCommand = {
      ...observed,
      at: clock.now().getTime(),
      isSecret: true,
      loggedParams: undefined,
    };
    this.#defer(() => this.#readCommand(pendingCommand, isLogged));
    if (!isLogged) return undefined;
    this.#unansweredCommands.add(pendingCommand);
    return response => {
      const answeredAt = clock.now().getTime();
      this.#defer(() => this.#logResponse(pendingCommand, response, answeredAt));
    };
  }

  /** Logs the commands that have not been answered, without a response. Call at the end of the session. */
  logUnanswered(): void {
    this.#runDeferred(this.#queue.length);
    for (const { method, at, targetIds, loggedParams: params = {} } of this.#unansweredCommands)
      this.#parts.log.add({ kind: 'command', method, at, ...this.#pageFieldOf(targetIds), params });
    this.#unansweredCommands.clear();
  }

  #readCommand(loggedCommand: LoggedCommand, isLogged: boolean): void {
    const { method, message = EMPTY_BUFFER } = loggedCommand;
    const parsedCommand = message.length > COMMAND_BYTES_MAX ? undefined : parse(message);
    const params = isObject(parsedCommand?.params) ? parsedCommand.params : {};
    if (parsedCommand) rememberTyped(this.#parts.log.typedText, method, loggedCommand.targetIds, params);
    if (!isLogged) return;
    loggedCommand.loggedParams = parsedCommand
      ? commandParams(method, this.#parts.log.secrets.cleanAll(params))
      : { cut: true, bytes: message.length };
    loggedCommand.isSecret = !parsedCommand || mayReturnSecrets(method, params);
    loggedCommand.message = undefined;
  }

  #logResponse(loggedCommand: LoggedCommand, response: Buffer, answeredAt: number): void {
    if (!this.#unansweredCommands.delete(loggedCommand)) return;
    const { method, targetIds, at, isSecret, loggedParams: keptParams } = loggedCommand;
    const { log } = this.#parts;
    const parsedResponse = response.length > RESPONSE_BYTES_MAX ? undefined : parse(response);
    const result = parsedResponse
      ? commandResult(method, isSecret, log.secrets.cleanAll(parsedResponse))
      : { cut: true, bytes: response.length };
    const targets = [...targetIds, textAt(result, 'targetId') ?? '', textAt(keptParams, 'targetId') ?? ''];
    log.add({
      kind: 'command',
      method,
      at,
      ...this.#pageFieldOf(targets),
      params: keptParams ?? {},
      result,
      answeredAt,
    });
  }

  #pageFieldOf(targetIds: readonly string[]): Pick<LogEntry, 'page'> {
    const page = targetIds.map(this.#parts.pageOf).find(number => number !== undefined);
    return page === undefined ? {} : { page };
  }

  #takeToken(): boolean {
    const nowMs = this.#parts.clock.monotonicMs();
    this.#tokens = Math.min(
      COMMAND_BURST_MAX,
      this.#tokens + ((nowMs - this.#tokensUpdatedMs) / 1000) * COMMANDS_PER_SECOND,
    );
    this.#tokensUpdatedMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  #defer(work: () => void): void {
    this.#queue.push(work);
    if (this.#queue.length > QUEUE_MAX) this.#runDeferred(1);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#runBatch);
  }

  #runDeferred(max: number): void {
    for (const work of this.#queue.splice(0, max)) this.#runGuarded(work);
  }

  readonly #runGuarded = guardListener(
    error => this.#parts.log.countUnreadable('command', error),
    (work: () => void) => work(),
  );

  readonly #runBatch = (): void => {
    this.#runDeferred(BATCH_MAX);
    this.#isScheduled = this.#queue.length > 0;
    if (this.#isScheduled) setImmediate(this.#runBatch);
  };
}

const mayType = ({ method, message }: ObservedCommand): boolean =>
  TYPING_COMMANDS.has(method) || (method === 'Runtime.evaluate' && message.length <= UNLOGGED_EXPRESSION_BYTES_MAX);

function parse(message: Buffer): UntrustedObject | undefined {
  const parsed = parseJson(message);
  return isObject(parsed) ? parsed : undefined;
}
