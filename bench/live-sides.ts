// Two ways to watch a page that changes: the live view of a session, and a minimal relay between Chromium's own socket
// and a canvas. A browser started by hand shows both, and records the time at which its canvas shows each color.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { DebugUrls } from '../contract/live.ts';
import { withTimeout } from '../server/kit/wait.ts';
import type { PlainChromium } from '../tests/harness/by-hand.ts';
import type { TestServer } from '../tests/harness/server.ts';
import { CdpConnection } from './cdp-connection.ts';

const START_TIMEOUT_MS = 10_000;
const EVALUATE_TIMEOUT_MS = 20_000;

/**
 * A page with a block that turns from black to white or back when a script calls `turnAfter` or a person clicks, and
 * with some text below the block.
 */
const CHANGING_PAGE = `<!doctype html><title>changes</title><style>body{margin:0;font:16px sans-serif}#b{height:300px;background:#000}</style>
<div id="b"></div><p>${'words on a page '.repeat(300)}</p><script>
  let white = false;
  const turn = () => { white = !white; b.style.background = white ? '#fff' : '#000'; return Date.now(); };
  globalThis.turnAfter = ms => new Promise(resolve => setTimeout(() => resolve([turn(), white]), ms));
  addEventListener('mousedown', turn);
</script>`;

/** Records the time and the color of the block for every draw of the canvas. */
const RECORD_DRAWS = `(() => {
  const draw = CanvasRenderingContext2D.prototype.drawImage;
  const seen = [];
  let waiting = [];
  CanvasRenderingContext2D.prototype.drawImage = function (...args) {
    draw.apply(this, args);
    const [red] = this.getImageData(20, 20, 1, 1).data;
    const now = [Date.now(), red > 128];
    seen.push(now);
    waiting = waiting.filter(look => !look(now));
  };
  globalThis.pressedAt = 0;
  addEventListener('pointerdown', () => { pressedAt = Date.now(); }, true);
  globalThis.isShown = () => seen.length > 0;
  globalThis.isWhite = () => seen.at(-1)?.[1];
  globalThis.shownAt = (white, sinceMs) => new Promise(resolve => {
    const look = ([at, is]) => at >= sinceMs && is === white && (resolve(at), true);
    if (!seen.some(look)) waiting.push(look);
  });
  globalThis.flood = seconds => new Promise(resolve => {
    const canvas = document.getElementById('canvas'), box = canvas.getBoundingClientRect(), endMs = Date.now() + seconds * 1000;
    let moves = 0;
    const timer = setInterval(() => {
      const at = { clientX: box.left + 50 + moves % 200, clientY: box.top + 50, pointerType: 'mouse', bubbles: true };
      moves++;
      canvas.dispatchEvent(new PointerEvent('pointermove', at));
      if (Date.now() >= endMs) { clearInterval(timer); resolve(moves); }
    }, 1);
  });
})()`;

/** A page with a CDP channel. */
export interface AttachedPage {
  readonly connection: CdpConnection;
  readonly page: string;
}

export interface LiveSide {
  readonly source: AttachedPage;
  readonly view: AttachedPage;
  close(): Promise<void>;
}

const SOURCE_ADDRESS = `data:text/html,${encodeURIComponent(CHANGING_PAGE)}`;

/** Evaluates the expression, and awaits its promise. */
export async function evaluateIn<T>({ connection, page }: AttachedPage, expression: string): Promise<T> {
  const params = { expression, returnByValue: true, awaitPromise: true };
  const { result } = await withTimeout(EVALUATE_TIMEOUT_MS, `an answer to ${expression.slice(0, 60)}`, () =>
    connection.send('Runtime.evaluate', params, page),
  );
  return Object(result).value;
}

export async function openLiveSide(server: TestServer, viewer: PlainChromium): Promise<LiveSide> {
  const session = await server.createSession({ keepAlive: true });
  const connection = await CdpConnection.open(session.connectUrl);
  const source = { connection, page: await connection.attachToPage() };
  await connection.visit(SOURCE_ADDRESS, source.page);
  const { body } = await server.api<DebugUrls>('GET', `/v1/browsers/sessions/${session.id}/debug`);
  const view = await openView(viewer, body.debuggerUrl);
  const close = async (): Promise<void> => {
    for (const side of [view, source]) side.connection.close();
    await server.release(session.id);
  };
  await evaluateIn(
    view,
    `new Promise(resolve => {
      const button = document.getElementById('control');
      const look = () => document.body.classList.contains('driving') ? resolve() : setTimeout(look, 20);
      button.click();
      look();
    })`,
  );
  return { source, view, close };
}

export async function openRawSide(browser: PlainChromium, viewer: PlainChromium): Promise<LiveSide> {
  const source = await openWindow(browser);
  await source.connection.visit(SOURCE_ADDRESS, source.page);
  const relay = await startRelay(browser.url, source.targetId);
  const view = await openView(viewer, relay.url);
  const close = async (): Promise<void> => {
    for (const side of [view, source]) side.connection.close();
    relay.end();
  };
  return { source, view, close };
}

export async function startRelay(url: string, targetId: string): Promise<{ url: string; pid: number; end(): void }> {
  const child = fork(join(import.meta.dirname, 'live-relay.ts'), [url, targetId]);
  const [port] = await withTimeout(START_TIMEOUT_MS, 'the relay to start', signal =>
    once(child, 'message', { signal }),
  );
  return { url: `http://127.0.0.1:${port}/`, pid: child.pid ?? 0, end: () => child.disconnect() };
}

/** A background tab is not painted, so each page has its own window. */
export async function openWindow({ url }: PlainChromium): Promise<AttachedPage & { readonly targetId: string }> {
  const connection = await CdpConnection.open(url);
  const windowOptions = { url: 'about:blank', newWindow: true, width: 1280, height: 720 };
  const { targetId } = await connection.send('Target.createTarget', windowOptions);
  const { sessionId } = await connection.send('Target.attachToTarget', { targetId, flatten: true });
  const page = String(sessionId);
  const size = { width: 1280, height: 720, deviceScaleFactor: 1, mobile: false };
  await connection.send('Emulation.setDeviceMetricsOverride', size, page);
  return { connection, page, targetId: String(targetId) };
}

async function openView(viewer: PlainChromium, address: string): Promise<AttachedPage> {
  const view = await openWindow(viewer);
  await view.connection.send('Page.enable', {}, view.page);
  await view.connection.send('Page.addScriptToEvaluateOnNewDocument', { source: RECORD_DRAWS }, view.page);
  await view.connection.visit(address, view.page);
  await evaluateIn(
    view,
    'new Promise(resolve => { const look = () => isShown() ? resolve() : setTimeout(look, 20); look(); })',
  );
  return view;
}
