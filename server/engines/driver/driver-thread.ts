// Runs in each thread of the driver. Keeps one connected browser for each session, and executes the commands of a
// session one after the other.
import { parentPort } from 'node:worker_threads';
import type { CommandResult, DriveFailure, Help, Leave, Order, Reply, ThreadMessage } from './command.ts';
import { DriveFailed } from './command.ts';
import { DrivenBrowser } from './driven-browser.ts';

const port = parentPort;
if (!port) throw new Error('this file can run only as a worker thread');

const MESSAGE_CHARACTERS_MAX = 2000;
/** Terminal colour codes in Playwright's messages. */
const COLOURS = /\u001b\[[0-9;]*m/g;

const browsers = new Map<string, Promise<DrivenBrowser>>();
const say = (message: ThreadMessage, moved: ArrayBuffer[] = []): void => port.postMessage(message, moved);

const asked = new Map<number, PromiseWithResolvers<void>>();
let lastAskId = 0;

port.on('message', (message: Order | Leave | Reply) => {
  if ('leave' in message) void leave(message.leave);
  else if ('reply' in message) onReply(message);
  else void perform(message);
});

async function perform({ id, session, address, command }: Order): Promise<void> {
  try {
    const browser = await connected(session, address);
    const result = await browser.run(command, help => ask(id, help));
    say({ id, result }, buffersOf(result));
  } catch (error) {
    const failed: DriveFailure = error instanceof DriveFailed ? error.why : 'command';
    say({ id, failed, message: wordsOf(error), details: error instanceof DriveFailed ? error.details : {} });
  }
}

/** Asks the main thread for help. Rejects if the main thread fails to help. */
function ask(of: number, help: Help): Promise<void> {
  lastAskId += 1;
  const answer = Promise.withResolvers<void>();
  asked.set(lastAskId, answer);
  say({ asks: lastAskId, of, help });
  return answer.promise;
}

function onReply({ reply, failed }: Reply): void {
  const answer = asked.get(reply);
  asked.delete(reply);
  if (failed) answer?.reject(new DriveFailed(failed.why, failed.message, failed.details));
  else answer?.resolve();
}

function connected(session: string, address: string): Promise<DrivenBrowser> {
  const known = browsers.get(session);
  if (known) return known;
  const gone = (): void => {
    browsers.delete(session);
    say({ closed: session });
  };
  const connecting = DrivenBrowser.connect(address, gone);
  browsers.set(session, connecting);
  connecting.catch(() => browsers.delete(session));
  return connecting;
}

async function leave(session: string): Promise<void> {
  const browser = await browsers.get(session)?.catch(() => undefined);
  browsers.delete(session);
  await browser?.close().catch(() => {});
}

/** The buffers to move to the main thread instead of copying them. */
const buffersOf = ({ image, captured, stepsOutcome }: CommandResult): ArrayBuffer[] =>
  [image?.bytes, captured?.bytes, ...(stepsOutcome?.results ?? []).map(({ bytes }) => bytes)].flatMap(bytes =>
    bytes && bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength ? [bytes.buffer] : [],
  );

function wordsOf(error: unknown): string {
  const text = error instanceof Error ? error.message : 'It threw no error.';
  return text.replace(COLOURS, '').slice(0, MESSAGE_CHARACTERS_MAX).toWellFormed();
}
