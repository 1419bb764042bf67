// A Chromium without a jail or a server, to which the browser engine is connected. It is for tests of the engine that
// also need clients. Clients connect to `url`, and all their commands are forwarded unchanged.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocketServer } from 'ws';
import { Browser, type BrowserClient } from '../../server/engines/browser/browser.ts';
import { work } from '../../server/engines/browser/envelope-job.ts';
import { switches } from '../../server/engines/browser/switches.ts';
import { findChromium } from '../../server/engines/slots/chromium.ts';
import { type Log, silentLog } from '../../server/kit/log.ts';
import { Scope } from '../../server/kit/scope.ts';

export interface BareBrowser {
  readonly browser: Browser;
  /** The URL that clients connect to. */
  readonly url: string;
  readonly pid: number;
  /** Disconnects the engine, as if its process had died, and connects it again. */
  adopt(): Promise<Browser>;
  close(): Promise<void>;
}

const START_TIMEOUT_MS = 30_000;
const VIEWPORT = { width: 1280, height: 720 };

export async function startBareBrowser(log: Log = silentLog): Promise<BareBrowser> {
  const scope = new Scope();
  const folder = mkdtempSync(join(tmpdir(), 'berth-bare-'));
  scope.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  for (const name of ['notes', 'profile']) mkdirSync(join(folder, name));
  const pipes = {
    fifoIn: join(folder, 'in'),
    fifoOut: join(folder, 'out'),
    notes: join(folder, 'notes'),
    folderInBox: folder,
    uploadsInBox: join(folder, 'uploads'),
  };
  const pid = startChromium(folder, pipes, scope);
  const signal = new AbortController().signal;
  let browser = await Browser.connect(pipes, log, START_TIMEOUT_MS, signal);
  await browser.applySettings({ viewport: VIEWPORT });
  scope.defer(() => browser.close());
  const url = await bridge(() => browser, scope);
  const adopt = async (): Promise<Browser> => {
    await browser.close();
    browser = await Browser.adopt(pipes, log, signal);
    return browser;
  };
  return {
    get browser() {
      return browser;
    },
    url,
    pid,
    adopt,
    close: () => scope.close(),
  };
}

function startChromium(folder: string, pipes: { fifoIn: string; fifoOut: string }, scope: Scope): number {
  for (const path of [pipes.fifoIn, pipes.fifoOut]) spawnSync('mkfifo', [path]);
  const descriptors = [pipes.fifoIn, pipes.fifoOut].map(path => openSync(path, constants.O_RDWR));
  const args = switches({ folder, egressPort: 1, hasSandbox: false }).filter(one => !one.startsWith('--proxy-'));
  const child = spawn(findChromium() ?? 'chromium', args, {
    stdio: ['ignore', 'ignore', 'ignore', ...descriptors],
    detached: true,
  });
  for (const end of descriptors) closeSync(end);
  const { pid } = child;
  if (pid === undefined) throw new Error('Chromium could not be started: the process has no id');
  const exit = once(child, 'exit');
  scope.defer(async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-pid, 'SIGKILL');
    await exit;
  });
  return pid;
}

async function bridge(browser: () => Browser, scope: Scope): Promise<string> {
  const socketServer = new WebSocketServer({ port: 0, host: '127.0.0.1', maxPayload: 256 * 1024 ** 2 });
  await once(socketServer, 'listening');
  socketServer.on('connection', async socket => {
    const earlyMessages: Buffer[] = [];
    let client: BrowserClient | undefined;
    socket.on('message', data => {
      if (!Buffer.isBuffer(data)) return;
      if (client) client.receive(data);
      else earlyMessages.push(data);
    });
    socket.on('close', () => void client?.close().catch(() => {}));
    const policy = {
      watchedMethods: new Set(['Target.setAutoAttach']),
      judge: () => ({ pass: true }) as const,
    };
    client = await browser().openClient(policy, {
      message: message => socket.send(message.toString('utf8')),
      batchEnd: () => {},
      setPaused: () => {},
      failed: () => socket.terminate(),
      readLongMessage: async message => work(message),
    });
    for (const message of earlyMessages) client.receive(message);
  });
  scope.defer(() => {
    for (const socket of socketServer.clients) socket.terminate();
    socketServer.close();
  });
  const { port } = socketServer.address() as AddressInfo;
  return `ws://127.0.0.1:${port}`;
}
