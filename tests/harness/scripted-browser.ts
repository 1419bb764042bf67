// Takes the place of Chromium at its end of the two FIFOs, to test responses that a real Chromium cannot be made to
// send. It has one page, attaches to every requested target, and answers any other command with an empty result, unless
// its script returns another result.
import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserPipes } from '../../server/engines/browser/browser.ts';

const SERVER_ERROR = -32000;
const CHANNEL_ID_CHARACTERS = 32;

export interface ScriptedCommand {
  readonly id: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly sessionId?: string;
}

export const targetInfoOf = (targetId: string, url: string, attached = true): object => ({
  targetId,
  type: 'page',
  title: '',
  url,
  attached,
});

export class ScriptedBrowser {
  readonly pipes: BrowserPipes;
  /** The commands so far. */
  readonly commands: ScriptedCommand[] = [];
  /** Returns the result of a command, or undefined for the usual result, or throws the error that the command gets. */
  script: (command: ScriptedCommand) => object | undefined = () => undefined;
  /** Commands with these methods are not answered. */
  readonly unansweredMethods = new Set<string>();
  readonly #folder: string;
  readonly #input: Socket;
  readonly #outputDescriptor: number;
  #partialMessage = '';
  #channelCount = 0;

  constructor() {
    this.#folder = mkdtempSync(join(tmpdir(), 'berth-scripted-'));
    const [fifoIn, fifoOut] = [join(this.#folder, 'in'), join(this.#folder, 'out')];
    execFileSync('mkfifo', [fifoIn, fifoOut]);
    this.pipes = { fifoIn, fifoOut, notes: this.#folder, folderInBox: this.#folder, uploadsInBox: this.#folder };
    const flags = constants.O_RDWR | constants.O_NONBLOCK;
    this.#outputDescriptor = openSync(fifoOut, flags);
    this.#input = new Socket({ fd: openSync(fifoIn, flags), readable: true, writable: false });
    this.#input.on('data', chunk => this.#receive(String(chunk)));
  }

  /** Sends an event on a channel, or without a channel if `sessionId` is undefined. */
  sendEvent(method: string, params: object, sessionId: string | undefined): void {
    this.#send({ method, params, sessionId });
  }

  /** The ids of the channels for which a detach command was received. */
  get detachedChannels(): readonly unknown[] {
    return this.#commandsWith('Target.detachFromTarget').map(({ params }) => params.sessionId);
  }

  /** The ids of the channels on which this command was received. */
  channelsWith(method: string): ReadonlyArray<string | undefined> {
    return this.#commandsWith(method).map(({ sessionId }) => sessionId);
  }

  close(): void {
    this.#input.destroy();
    closeSync(this.#outputDescriptor);
    rmSync(this.#folder, { recursive: true });
  }

  #commandsWith(method: string): readonly ScriptedCommand[] {
    return this.commands.filter(command => command.method === method);
  }

  #receive(text: string): void {
    const messages = (this.#partialMessage + text).split('\0');
    this.#partialMessage = messages.pop() ?? '';
    for (const message of messages) if (message !== '') this.#perform(JSON.parse(message));
  }

  #perform(command: ScriptedCommand): void {
    this.commands.push(command);
    if (this.unansweredMethods.has(command.method)) return;
    const { id, sessionId } = command;
    try {
      this.#send({ id, result: this.script(command) ?? this.#usualResult(command), sessionId });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#send({ id, error: { code: SERVER_ERROR, message }, sessionId });
    }
  }

  #usualResult({ method, params, sessionId }: ScriptedCommand): object {
    if (method === 'Target.setDiscoverTargets')
      this.sendEvent('Target.targetCreated', { targetInfo: targetInfoOf('page', 'about:blank') }, sessionId);
    if (method !== 'Target.attachToBrowserTarget' && method !== 'Target.attachToTarget') return {};
    this.#channelCount++;
    const channel = String(this.#channelCount).padStart(CHANNEL_ID_CHARACTERS, '0');
    if (method === 'Target.attachToTarget') {
      const targetInfo = targetInfoOf(String(params.targetId), 'about:blank');
      this.sendEvent('Target.attachedToTarget', { sessionId: channel, targetInfo }, sessionId);
    }
    return { sessionId: channel };
  }

  /** `id` or `method` must be first in a message, and `sessionId` last, as Chromium writes them. */
  #send(message: object): void {
    writeSync(this.#outputDescriptor, `${JSON.stringify(message)}\0`);
  }
}
