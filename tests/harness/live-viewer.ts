// A program that acts as a viewer of a live view. It uses the protocol of the live view page over a WebSocket and
// records the messages.
import { WebSocket } from 'ws';
import type { FrameHead, ServerMessage, TabState } from '../../contract/live-messages.ts';
import { eventually } from './until.ts';

type MessageOf<Type extends ServerMessage['type']> = Extract<ServerMessage, { type: Type }>;

export class LiveViewer {
  readonly messages: ServerMessage[] = [];
  frameCount = 0;
  newestFrame: { readonly head: FrameHead; readonly jpeg: Buffer } | undefined;
  /** If true, frames are not acknowledged on arrival: the test sends `drawn` itself. */
  isSlow = false;
  closeInfo: { readonly code: number; readonly reason: string } | undefined;
  readonly #socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer, binary) => (binary ? this.#onFrame(data) : this.#onMessage(data)));
    socket.on('close', (code, reason) => {
      this.closeInfo = { code, reason: reason.toString() };
    });
  }

  /**
   * Connects to `url`, a debuggerUrl. `holder` is the id of an earlier connection. If the connection is refused,
   * rejects with an error that names the status.
   */
  static async open(url: string, holder?: string): Promise<LiveViewer> {
    const socketUrl = new URL(url);
    socketUrl.protocol = socketUrl.protocol.replace('http', 'ws');
    socketUrl.pathname += '/socket';
    if (holder !== undefined) socketUrl.searchParams.set('holder', holder);
    const socket = new WebSocket(socketUrl);
    const viewer = new LiveViewer(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('unexpected-response', (_request, { statusCode }) =>
        reject(new Error(`the live view was refused with ${statusCode}`)),
      );
      socket.once('error', reject);
    });
    return viewer;
  }

  send(message: object): void {
    this.#socket.send(JSON.stringify(message));
  }

  sendRaw(data: string | Buffer): void {
    this.#socket.send(data);
  }

  last<Type extends ServerMessage['type']>(type: Type): MessageOf<Type> | undefined {
    return this.messages.findLast((message): message is MessageOf<Type> => message.type === type);
  }

  get tabs(): readonly TabState[] {
    return this.last('tabs')?.tabs ?? [];
  }

  get page(): string {
    return this.last('page')?.page ?? '';
  }

  get fence(): number {
    return this.last('control')?.fence ?? 0;
  }

  get holder(): string {
    return this.last('welcome')?.holder ?? '';
  }

  async takeControl(): Promise<void> {
    this.send({ type: 'take' });
    await eventually('control to be taken', () => this.last('control')?.who === 'you');
  }

  async giveControl(): Promise<void> {
    this.send({ type: 'give', fence: this.fence });
    await eventually('control to be given back', () => this.last('control')?.who === 'agent');
  }

  /** Sends input to the viewed page with the current fence. */
  sendInput(message: object): void {
    this.send({ fence: this.fence, page: this.page, ...message });
  }

  click(x: number, y: number): void {
    const commonFields = { x, y, button: 'left', clicks: 1, modifiers: 0 };
    this.sendInput({ type: 'mouse', action: 'down', buttons: 1, ...commonFields });
    this.sendInput({ type: 'mouse', action: 'up', buttons: 0, ...commonFields });
  }

  /** Stops reading, as if behind a saturated link. */
  stall(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): Promise<void> {
    const socketClosed = new Promise<void>(resolve => this.#socket.once('close', () => resolve()));
    if (this.closeInfo) return Promise.resolve();
    this.#socket.close();
    return socketClosed;
  }

  #onMessage(data: Buffer): void {
    this.messages.push(JSON.parse(data.toString('utf8'))); // sent by our own server
  }

  #onFrame(data: Buffer): void {
    const headLength = data.readUInt16BE(0);
    this.frameCount++;
    this.newestFrame = {
      head: JSON.parse(data.subarray(2, 2 + headLength).toString('utf8')),
      jpeg: data.subarray(2 + headLength),
    };
    if (!this.isSlow) this.send({ type: 'drawn' });
  }
}
