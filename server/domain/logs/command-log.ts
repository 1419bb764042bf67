// Logs what clients ask of the browser. On the way of a message nothing is done but to remember it; what is in it is read
// between two turns of the event loop. More than a client in its senses says is counted, not logged.
import type { Clock } from '../../kit/clock.ts';
import { parseJson } from '../../kit/foreign.ts';
import { guarded } from '../../kit/guard.ts';
import type { CommandTap, Overheard } from '../sessions/machinery.ts';
import { answersSecrets, commandParams, commandResult, LOGGED_COMMANDS } from './command-entries.ts';
import type { LogEntry } from './entry.ts';
import { scanExpression } from './expression.ts';
import { COMMANDS_AT_ONCE, COMMANDS_PER_SECOND } from './limits.ts';
import type { SessionLog } from './session-log.ts';
import { isObject, type Said, textAt } from './values.ts';

/** Longer messages are not read, only counted. */
const COMMAND_BYTES_MAX = 64 * 1024;
const ANSWER_BYTES_MAX = 16 * 1024;
/** So many are read before others have their turn. */
const BATCH = 100;
const NOTHING = Buffer.alloc(0);
/** Read even where it is not logged, so that what was typed is known. */
const TYPES: ReadonlySet<string> = new Set([
  'Input.insertText',
  'Input.dispatchKeyEvent',
  'Input.imeSetComposition',
  'Runtime.callFunctionOn',
  'Page.handleJavaScriptDialog',
]);

export interface CommandLogParts {
  readonly log: SessionLog;
  /** The number of the page that a target is, or is part of. */
  readonly pageOf: (targetId: string) => number | undefined;
  readonly clock: Clock;
}

interface Asked {
  readonly method: string;
  readonly targetIds: readonly string[];
  /** Until it is read. */
  message: Buffer | undefined;
  readonly at: number;
  isSecret: boolean;
  kept: LogEntry['params'] | undefined;
}

export class CommandLog implements CommandTap {
  readonly methods = LOGGED_COMMANDS;
  readonly #parts: CommandLogParts;
  readonly #queue: Array<() => void> = [];
  #planned = false;
  #credit = COMMANDS_AT_ONCE;
  #creditMs: number;

  constructor(parts: CommandLogParts) {
    this.#parts = parts;
    this.#creditMs = parts.clock.monotonicMs();
    // On a busy machine a page's echo of what was typed can be heard in the same turn as the typing.
    parts.log.catchUp = () => this.#workOff(this.#queue.length);
  }

  asked(overheard: Overheard): ((answer: Buffer) => void) | undefined {
    const { log, clock } = this.#parts;
    const isLogged = log.takes('command') && (this.#hasCredit() || log.drop('command', 'rate'));
    if (!isLogged && !TYPES.has(overheard.method)) return undefined;
    const asked: Asked = { ...overheard, at: clock.now().getTime(), isSecret: true, kept: undefined };
    this.#later(() => this.#read(asked));
    if (!isLogged) return undefined;
    return answer => {
      const answeredAt = clock.now().getTime();
      this.#later(() => this.#answered(asked, answer, answeredAt));
    };
  }

  #read(asked: Asked): void {
    const { method, message = NOTHING } = asked;
    const parsed = message.length > COMMAND_BYTES_MAX ? undefined : parse(message);
    const params = isObject(parsed?.params) ? parsed.params : {};
    if (parsed) this.#remember(asked, params);
    asked.kept = parsed ? commandParams(method, params) : { cut: true, bytes: message.length };
    asked.isSecret = !parsed || answersSecrets(method, params);
    asked.message = undefined;
  }

  #answered({ method, targetIds, at, isSecret, kept }: Asked, answer: Buffer, answeredAt: number): void {
    const { log, pageOf } = this.#parts;
    const parsed = answer.length > ANSWER_BYTES_MAX ? undefined : parse(answer);
    const result = parsed ? commandResult(method, isSecret, parsed) : { cut: true, bytes: answer.length };
    const targets = [...targetIds, textAt(result, 'targetId') ?? '', textAt(kept, 'targetId') ?? ''];
    const page = targets.map(pageOf).find(number => number !== undefined);
    const place = { ...(page === undefined ? {} : { page }) };
    log.add({ kind: 'command', method, at, ...place, params: kept ?? {}, result, answeredAt });
  }

  #remember({ method, targetIds }: Asked, params: Said): void {
    const { typed } = this.#parts.log;
    const [channel = ''] = targetIds;
    switch (method) {
      case 'Input.insertText':
      case 'Input.imeSetComposition':
        return this.#inserted(channel, textAt(params, 'text') ?? '');
      case 'Input.dispatchKeyEvent':
        return this.#key(channel, params);
      case 'Runtime.callFunctionOn':
        typed.interrupted(channel);
        return typed.given(params.arguments);
      case 'Input.dispatchMouseEvent':
        return typed.interrupted(channel);
      case 'Page.handleJavaScriptDialog':
        return typed.typed(textAt(params, 'promptText') ?? '');
      case 'Runtime.evaluate':
        typed.interrupted(channel);
        return typed.given(scanExpression(textAt(params, 'expression') ?? '').quoted);
    }
  }

  /** Some clients insert a text letter by letter. */
  #inserted(channel: string, text: string): void {
    const { typed } = this.#parts.log;
    if ([...text].length === 1) return typed.key(channel, text);
    typed.interrupted(channel);
    typed.typed(text);
  }

  #key(channel: string, params: Said): void {
    const { typed } = this.#parts.log;
    if (params.type === 'keyUp') return;
    const text = textAt(params, 'text') ?? '';
    const key = textAt(params, 'key') ?? '';
    if (text !== '' && text !== '\r') typed.key(channel, text);
    else if (key === 'Backspace') typed.backspace(channel);
    else if (key === 'Enter' || key === 'Tab') typed.pause(channel);
  }

  #hasCredit(): boolean {
    const now = this.#parts.clock.monotonicMs();
    this.#credit = Math.min(COMMANDS_AT_ONCE, this.#credit + ((now - this.#creditMs) / 1000) * COMMANDS_PER_SECOND);
    this.#creditMs = now;
    if (this.#credit < 1) return false;
    this.#credit--;
    return true;
  }

  #later(work: () => void): void {
    this.#queue.push(work);
    if (this.#planned) return;
    this.#planned = true;
    setImmediate(this.#work);
  }

  #workOff(most: number): void {
    for (const work of this.#queue.splice(0, most)) this.#guarded(work);
  }

  readonly #guarded = guarded(
    error => this.#parts.log.unreadable('command', error),
    (work: () => void) => work(),
  );

  readonly #work = (): void => {
    this.#workOff(BATCH);
    this.#planned = this.#queue.length > 0;
    if (this.#planned) setImmediate(this.#work);
  };
}

function parse(message: Buffer): Said | undefined {
  const parsed = parseJson(message);
  return isObject(parsed) ? parsed : undefined;
}
