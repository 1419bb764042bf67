// A Chromium whose pipe passes through this process, which can change the messages to the server and insert others.
// BERTH_CHROMIUM is a script that starts the real Chromium. For an intercepted session, the script connects Chromium to
// FIFOs of this process.
import { execFileSync } from 'node:child_process';
import {
  constants,
  copyFileSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { chmod } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { eventually } from '../harness/until.ts';

const REAL_CHROMIUM = '/usr/lib/chromium/chromium';

export interface PipeInterceptor {
  /** The value of BERTH_CHROMIUM. */
  readonly path: string;
  /** Sends the messages of the next session's browser through `change`. `create` creates that session. */
  interceptSession<T>(
    dataDir: string,
    change: Change,
    create: () => Promise<T>,
  ): Promise<{ createResult: T; pipe: BrowserPipe }>;
}

/** Maps one message from the browser, without its NUL, to the messages that the server receives instead. */
export type Change = (message: Buffer) => readonly Buffer[];

export interface BrowserPipe {
  /** Sends a message as the browser. */
  sendAsBrowser(message: Buffer): void;
  close(): void;
}

const NUL = Buffer.from([0]);

export async function openPipeInterceptor(): Promise<PipeInterceptor> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-between-'));
  after(() => rmSync(folder, { recursive: true }));
  await chmod(folder, 0o755);
  copyFileSync('/bin/dash', join(folder, 'dash'));
  const path = join(folder, 'chromium');
  const script = [
    `#!${folder}/dash`,
    `read -r line < ${folder}/line`,
    `[ "$line" = direct ] && exec ${REAL_CHROMIUM} "$@"`,
    `exec ${REAL_CHROMIUM} "$@" 3< ${folder}/$line-in 4> ${folder}/$line-out`,
    '',
  ];
  writeFileSync(path, script.join('\n'), { mode: 0o755 });
  const choosePipe = (line: string): void => {
    writeFileSync(join(folder, 'line.new'), `${line}\n`);
    renameSync(join(folder, 'line.new'), join(folder, 'line'));
  };
  choosePipe('direct');
  let pipeCount = 0;
  return {
    path,
    interceptSession: async (dataDir, change, create) => {
      const name = `line${++pipeCount}`;
      const ourFifos = ['in', 'out'].map(end => join(folder, `${name}-${end}`)) as [string, string];
      execFileSync('mkfifo', ['-m', '666', ...ourFifos]);
      for (const fifo of ourFifos) await chmod(fifo, 0o666);
      const knownBoxes = new Set(listBoxes(dataDir));
      const ends = [openEnd(ourFifos[0], 'write'), openEnd(ourFifos[1], 'read')] as const;
      choosePipe(name);
      const pipe = new ConnectedPipe(ends, change);
      try {
        const pendingJoin = eventually('the box of the session', () =>
          listBoxes(dataDir).find(box => !knownBoxes.has(box)),
        ).then(box => pipe.join(join(dataDir, 'sessions', box ?? '', 'notes')));
        const [createResult] = await Promise.all([create(), pendingJoin]);
        return { createResult, pipe };
      } catch (error) {
        pipe.close();
        throw error;
      } finally {
        choosePipe('direct');
        for (const fifo of ourFifos) rmSync(fifo);
      }
    },
  };
}

/** Returns the names of the boxes whose FIFOs exist. */
const listBoxes = (dataDir: string): string[] =>
  list(join(dataDir, 'sessions')).filter(box => {
    const noteNames = list(join(dataDir, 'sessions', box, 'notes'));
    return noteNames.includes('in') && noteNames.includes('out');
  });

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/**
 * Opens a FIFO for reading and writing, so that opening does not block and there is no end of file. The socket is used
 * in one direction only.
 */
function openEnd(fifo: string, direction: 'read' | 'write'): Socket {
  const fd = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
  return new Socket({ fd, readable: direction === 'read', writable: direction === 'write' }).on('error', () => {});
}

class ConnectedPipe implements BrowserPipe {
  readonly #toBrowser: Socket;
  readonly #fromBrowser: Socket;
  readonly #change: Change;
  #toServer: Socket | undefined;
  #fromServer: Socket | undefined;
  #rest: Buffer = Buffer.alloc(0);

  constructor([toBrowser, fromBrowser]: readonly [Socket, Socket], change: Change) {
    this.#toBrowser = toBrowser;
    this.#fromBrowser = fromBrowser;
    this.#change = change;
  }

  join(notes: string): void {
    this.#fromServer = openEnd(join(notes, 'in'), 'read');
    this.#toServer = openEnd(join(notes, 'out'), 'write');
    this.#fromServer.on('data', chunk => this.#toBrowser.write(chunk));
    this.#fromBrowser.on('data', chunk => this.#readChunk(chunk));
  }

  sendAsBrowser(message: Buffer): void {
    this.#toServer?.write(Buffer.concat([message, NUL]));
  }

  close(): void {
    for (const end of [this.#toBrowser, this.#fromBrowser, this.#toServer, this.#fromServer]) end?.destroy();
  }

  #readChunk(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (let end = this.#rest.indexOf(0); end >= 0; end = this.#rest.indexOf(0)) {
      const message = this.#rest.subarray(0, end);
      this.#rest = this.#rest.subarray(end + 1);
      for (const replacement of this.#change(message)) this.sendAsBrowser(replacement);
    }
  }
}
