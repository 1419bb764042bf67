// A Chromium whose pipe passes through this process, so that its messages to the server can be changed and others
// inserted. BERTH_CHROMIUM is a script that starts the real Chromium, with the FIFOs of this process for an intercepted
// session.
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

const REAL = '/usr/lib/chromium/chromium';

export interface PipeInterceptor {
  /** The value of BERTH_CHROMIUM. */
  readonly path: string;
  /** Sends the messages of the next session's browser through `change`. `create` creates that session. */
  interceptSession<T>(dataDir: string, change: Change, create: () => Promise<T>): Promise<{ made: T; line: Line }>;
}

/** Maps one message from the browser, without its NUL, to the messages that the server receives instead. */
export type Change = (message: Buffer) => readonly Buffer[];

export interface Line {
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
    `[ "$line" = direct ] && exec ${REAL} "$@"`,
    `exec ${REAL} "$@" 3< ${folder}/$line-in 4> ${folder}/$line-out`,
    '',
  ];
  writeFileSync(path, script.join('\n'), { mode: 0o755 });
  const choose = (line: string): void => {
    writeFileSync(join(folder, 'line.new'), `${line}\n`);
    renameSync(join(folder, 'line.new'), join(folder, 'line'));
  };
  choose('direct');
  let lines = 0;
  return {
    path,
    interceptSession: async (dataDir, change, create) => {
      const name = `line${++lines}`;
      const ours = ['in', 'out'].map(end => join(folder, `${name}-${end}`)) as [string, string];
      execFileSync('mkfifo', ['-m', '666', ...ours]);
      for (const fifo of ours) await chmod(fifo, 0o666);
      const known = new Set(boxes(dataDir));
      const ends = [openEnd(ours[0], 'write'), openEnd(ours[1], 'read')] as const;
      choose(name);
      const line = new ConnectedLine(ends, change);
      try {
        const joining = eventually('the box of the session', () => boxes(dataDir).find(box => !known.has(box))).then(
          box => line.join(join(dataDir, 'sessions', box ?? '', 'notes')),
        );
        const [made] = await Promise.all([create(), joining]);
        return { made, line };
      } catch (error) {
        line.close();
        throw error;
      } finally {
        choose('direct');
        for (const fifo of ours) rmSync(fifo);
      }
    },
  };
}

/** Returns the names of the boxes whose FIFOs exist. */
const boxes = (dataDir: string): string[] =>
  list(join(dataDir, 'sessions')).filter(box => {
    const notes = list(join(dataDir, 'sessions', box, 'notes'));
    return notes.includes('in') && notes.includes('out');
  });

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/**
 * Opens a FIFO for reading and writing, so that opening does not block and there is no end of file. Used in one
 * direction only.
 */
function openEnd(fifo: string, way: 'read' | 'write'): Socket {
  const fd = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
  return new Socket({ fd, readable: way === 'read', writable: way === 'write' }).on('error', () => {});
}

class ConnectedLine implements Line {
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
