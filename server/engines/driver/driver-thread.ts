// Runs in each thread of the driver. Keeps one connected browser for each session, and executes the commands of a
// session one after the other.
import { parentPort } from 'node:worker_threads';
import { storableCopy, toStorable } from '../../kit/storable.ts';
import { WaitExpired, withTimeout } from '../../kit/wait.ts';
import type {
  CommandMessage,
  CommandResult,
  DisconnectMessage,
  DriveFailure,
  HelpReply,
  HelpRequest,
  ThreadMessage,
} from './command.ts';
import { DriveFailed } from './command.ts';
import { DrivenBrowser } from './driven-browser.ts';

const port = parentPort;
if (!port) throw new Error('this file can run only as a worker thread');

const MESSAGE_CHARACTERS_MAX = 2000;
/** Terminal color codes in Playwright's messages. */
const COLOR_CODE_PATTERN = /\u001b\[[0-9;]*m/g;

const browsers = new Map<string, Promise<DrivenBrowser>>();
const post = (message: ThreadMessage, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer);

const pendingHelp = new Map<number, PromiseWithResolvers<void>>();
let lastHelpId = 0;

port.on('message', (message: CommandMessage | DisconnectMessage | HelpReply) => {
  if ('sessionToDisconnect' in message) void disconnect(message.sessionToDisconnect);
  else if ('reply' in message) onReply(message);
  else void perform(message);
});

async function perform({ id, session, address, command, limitMs }: CommandMessage): Promise<void> {
  const askForHelp = (help: HelpRequest): Promise<void> => requestHelp(id, help);
  try {
    const run = async () => (await browserOf(session, address)).run(command, askForHelp);
    // The strings in a result come from the page, and operations store them. `storableCopy` replaces characters that
    // cannot be stored.
    const result = storableCopy(await withTimeout(limitMs, 'the command', run));
    post({ id, result }, buffersOf(result));
  } catch (error) {
    if (error instanceof WaitExpired) return abandonCommand(id, session, limitMs);
    const failed: DriveFailure = error instanceof DriveFailed ? error.why : 'command';
    post({ id, failed, message: messageOf(error), details: error instanceof DriveFailed ? error.details : {} });
  }
}

/**
 * Reports that a command took too long. The connection of its session is closed, because no other command can use the
 * connection while the command hangs. The next command of the session connects again. Other sessions are not affected.
 */
function abandonCommand(id: number, session: string, limitMs: number): void {
  void disconnect(session);
  post({ id, failed: 'too_long', message: `The command took longer than ${limitMs / 1000} s.`, details: {} });
}

/** Asks the main thread for help. Rejects if the help fails. */
function requestHelp(commandId: number, help: HelpRequest): Promise<void> {
  lastHelpId += 1;
  const response = Promise.withResolvers<void>();
  pendingHelp.set(lastHelpId, response);
  post({ helpId: lastHelpId, commandId, help });
  return response.promise;
}

function onReply({ reply, failed }: HelpReply): void {
  const response = pendingHelp.get(reply);
  pendingHelp.delete(reply);
  if (failed) response?.reject(new DriveFailed(failed.why, failed.message, failed.details));
  else response?.resolve();
}

function browserOf(session: string, address: string): Promise<DrivenBrowser> {
  const existingBrowser = browsers.get(session);
  if (existingBrowser) return existingBrowser;
  /** True unless a later connection of the session has replaced this one. */
  const isCurrent = (): boolean => browsers.get(session) === browserPromise;
  const onGone = (): void => {
    if (!isCurrent()) return;
    browsers.delete(session);
    post({ closed: session });
  };
  const browserPromise = DrivenBrowser.connect(address, onGone);
  browsers.set(session, browserPromise);
  browserPromise.catch(() => isCurrent() && browsers.delete(session));
  return browserPromise;
}

async function disconnect(session: string): Promise<void> {
  const browserPromise = browsers.get(session);
  browsers.delete(session);
  const browser = await browserPromise?.catch(() => undefined);
  await browser?.close().catch(() => {});
}

/** The buffers to move to the main thread instead of copying them. */
const buffersOf = ({ image, captured, stepsOutcome }: CommandResult): ArrayBuffer[] =>
  [image?.bytes, captured?.bytes, ...(stepsOutcome?.results ?? []).map(({ bytes }) => bytes)].flatMap(bytes =>
    bytes && bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer] : [],
  );

function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : 'An unknown error occurred.';
  return toStorable(text.replace(COLOR_CODE_PATTERN, '').slice(0, MESSAGE_CHARACTERS_MAX));
}
