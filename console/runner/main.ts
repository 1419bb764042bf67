// Runs a snippet of the playground. This page is in a sandboxed frame with an opaque origin, so that a snippet cannot
// reach the storage, cookies or page of the console. The only address that a snippet can reach is the WebSocket of this
// service.
import { connect } from 'puppeteer-core/lib/esm/puppeteer/puppeteer-core-browser.js';
import type { RunnerMessage, RunRequest } from './messages.ts';

// The constructor of async functions is not a global.
const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor as FunctionConstructor;
const LEVELS = ['log', 'info', 'warn', 'error', 'debug'] as const;

addEventListener('message', (event: MessageEvent<RunRequest>) => {
  const [port] = event.ports;
  if (event.source !== parent || !port) return;
  const send = (message: RunnerMessage): void => port.postMessage(message);
  addEventListener('unhandledrejection', ({ reason }) =>
    send({ kind: 'line', level: 'error', text: toPrintable(reason) }),
  );
  run(event.data, send).then(
    () => send({ kind: 'done' }),
    (error: unknown) => send({ kind: 'failed', text: toPrintable(error) }),
  );
});

async function run({ connectUrl, code }: RunRequest, post: (message: RunnerMessage) => void): Promise<void> {
  const console = Object.fromEntries(
    LEVELS.map(level => [
      level,
      (...values: readonly unknown[]) => post({ kind: 'line', level, text: values.map(toPrintable).join(' ') }),
    ]),
  );
  const browser = await connect({ browserWSEndpoint: connectUrl, defaultViewport: null });
  try {
    const page = (await browser.pages())[0] ?? (await browser.newPage());
    const value: unknown = await AsyncFunction('browser', 'page', 'console', code)(browser, page, console);
    if (value !== undefined) post({ kind: 'line', level: 'log', text: toPrintable(value) });
  } finally {
    await browser.disconnect();
  }
}

function toPrintable(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  try {
    return JSON.stringify(value, undefined, 2) ?? String(value);
  } catch {
    return String(value);
  }
}
